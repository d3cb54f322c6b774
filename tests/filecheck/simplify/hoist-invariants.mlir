// RUN: opt --pass-pipeline='annotate,hoist-invariants' --split-input-file %s | filecheck %s

// A product that is the same in every iteration is computed before the loop, with what it needs; a cheap op stays.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %t = stablehlo.tanh %x : tensor<?x8xf32, [@b, 8]>
    %p = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %n = stablehlo.negate %p : tensor<?x8xf32, [@b, 8]>
    %sum = stablehlo.add %acc, %n : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.tanh %arg0
// CHECK: %[[P:.*]] = stablehlo.dot_general %[[T]], %arg1
// CHECK-NOT: stablehlo.negate
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.negate %[[P]]

// -----

// One that reads what the loop carries stays in it.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %t = stablehlo.tanh %acc : tensor<?x8xf32, [@b, 8]>
    %p = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while({{.*}}, %[[ACC:.*]] = %arg0)
// CHECK: %[[T:.*]] = stablehlo.tanh %[[ACC]]
// CHECK: stablehlo.dot_general %[[T]], %arg1

// -----

// A branch stays in the loop, although both sides of it are from outside, and so does the product that reads its result.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>, %which: tensor<i1>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %m = "stablehlo.if"(%which) ({
      stablehlo.return %v : tensor<8x8xf32>
    }, {
      stablehlo.return %w : tensor<8x8xf32>
    }) : (tensor<i1>) -> tensor<8x8xf32>
    %p = stablehlo.dot_general %x, %m, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %sum = stablehlo.add %acc, %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: %[[M:.*]] = "stablehlo.if"(%arg3)
// CHECK: stablehlo.dot_general %arg0, %[[M]]

// -----

// A constant of the loop's body that only the region of a hoisted reduction reads moves with it.
func.func @main(%x: tensor<4x8xf32>, %h: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %init = stablehlo.constant dense<0.0> : tensor<f32>
    %s = "stablehlo.reduce"(%x, %init) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.multiply %b, %half : tensor<f32>
      %q = stablehlo.add %a, %p : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %new = stablehlo.add %state, %s : tensor<4xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<5.000000e-01>
// CHECK: stablehlo.reduce
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.reduce
// CHECK: return
