// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A matrix by whose rows a loop multiplies is transposed once, before the loop.
func.func @main(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %state, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.tanh %p : tensor<4x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general %{{.*}}, %[[T]], contracting_dims = [1] x [0]

// -----

// One that the loop changes is not.
func.func @main(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %state = %h, %v = %w) : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %state, %v, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.tanh %p : tensor<4x8xf32>
    %v2 = stablehlo.tanh %v : tensor<8x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new, %v2 : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>
  }
  return %r#1, %r#2 : tensor<4x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1]
// CHECK-NOT: stablehlo.transpose
// CHECK: return

// -----

// Nor a large one: reading it transposed in each step costs less than the copy.
func.func @main(%h: tensor<4x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<4x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x1024xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %state, %w, contracting_dims = [1] x [1] : (tensor<4x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x1024xf32>
    %new = stablehlo.tanh %p : tensor<4x1024xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x1024xf32>
  }
  return %r#1 : tensor<4x1024xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1]
