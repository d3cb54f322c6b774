// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A product that no iteration changes is computed before the loop.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %sum = stablehlo.add %acc, %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.add %{{.*}}, %[[P]]

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
    %p = stablehlo.dot_general %acc, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general

// -----

// A gather moves, too: its window lies inside of every array that the program takes, even where the loop does not run.
// CHECK: "disc.symbol"() {min = 2 : i64, name = "b"}
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %n: tensor<i32>, %at: tensor<1xi32>) -> tensor<2x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<2x8xf32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %start) : tensor<i32>, tensor<2x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, slice_sizes = array<i64: 2, 8>}> : (tensor<?x8xf32, [@b, 8]>, tensor<1xi32>) -> tensor<2x8xf32>
    %sum = stablehlo.add %acc, %p : tensor<2x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<2x8xf32>
  }
  return %r#1 : tensor<2x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[G:.*]] = "stablehlo.gather"
// CHECK: stablehlo.while
// CHECK: stablehlo.add %{{.*}}, %[[G]]

// -----

// What is carried and never changes is not carried.
func.func @main(%x: tensor<?xf32, [@b]>, %y: tensor<?xf32, [@b]>) -> (tensor<?xf32, [@b]>, tensor<?xf32, [@b]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %acc = %x, %same = %y) : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %sum = stablehlo.add %acc, %same : tensor<?xf32, [@b]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum, %same : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
  }
  return %r#1, %r#2 : tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = stablehlo.while
// CHECK: stablehlo.add %{{.*}}, %arg1
// CHECK: return %[[R]]#1, %arg1

// -----

// A branch whose choice is known is opened.
func.func @main(%x: tensor<?xf32, [@b]>) -> tensor<?xf32, [@b]> {
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%yes) ({
    %1 = stablehlo.tanh %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }) : (tensor<i1>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.negate
// CHECK: %[[T:.*]] = stablehlo.tanh %arg0
// CHECK-NEXT: return %[[T]]

// -----

// One whose choice is data stays.
func.func @main(%x: tensor<?xf32, [@b]>, %which: tensor<i1>) -> tensor<?xf32, [@b]> {
  %0 = "stablehlo.if"(%which) ({
    %1 = stablehlo.tanh %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }) : (tensor<i1>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: {{stablehlo.(if|case)}}
// CHECK: stablehlo.tanh
// CHECK: stablehlo.negate
