// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A sum of products over the steps of a loop is one product after it.
func.func @main(%xs: tensor<10x4x16xf32>, %ys: tensor<10x4x8xf32>) -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %start) : tensor<i32>, tensor<16x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %s2 = stablehlo.dynamic_slice %ys, %i, %zero, %zero, sizes = [1, 4, 8] : (tensor<10x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %y = stablehlo.reshape %s2 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %t = stablehlo.tanh %y : tensor<4x8xf32>
    %p = stablehlo.dot_general %row, %t, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %sum = stablehlo.add %acc, %p : tensor<16x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<16x8xf32>
  }
  return %r#1 : tensor<16x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = stablehlo.while
// CHECK: %[[T:.*]] = stablehlo.tanh
// CHECK: %[[ROW:.*]] = stablehlo.reshape %[[T]]
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[ROW]]
// CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %[[R]]#1, contracting_dims = [0, 1] x [0, 1]
// CHECK: %[[SUM:.*]] = stablehlo.add %cst, %[[P]]
// CHECK-NEXT: return %[[SUM]]

// -----

// A sum that the loop reads is needed in each step.
func.func @main(%xs: tensor<10x4x16xf32>, %ys: tensor<10x4x8xf32>) -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %start) : tensor<i32>, tensor<16x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %s2 = stablehlo.dynamic_slice %ys, %i, %zero, %zero, sizes = [1, 4, 8] : (tensor<10x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %y = stablehlo.reshape %s2 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %p = stablehlo.dot_general %row, %y, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %half = stablehlo.tanh %acc : tensor<16x8xf32>
    %sum = stablehlo.add %half, %p : tensor<16x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<16x8xf32>
  }
  return %r#1 : tensor<16x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.tanh
// CHECK: return %{{.*}}#1

// -----

// Sums of integers, and of products that are rounded, stay where they are.
func.func @main(%xs: tensor<10x4x16xbf16>, %ys: tensor<10x4x8xbf16>) -> tensor<16x8xbf16> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x8xbf16>
  %r:2 = stablehlo.while(%i = %zero, %acc = %start) : tensor<i32>, tensor<16x8xbf16>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xbf16>
    %row = stablehlo.reshape %s : (tensor<1x4x16xbf16>) -> tensor<4x16xbf16>
    %s2 = stablehlo.dynamic_slice %ys, %i, %zero, %zero, sizes = [1, 4, 8] : (tensor<10x4x8xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xbf16>
    %y = stablehlo.reshape %s2 : (tensor<1x4x8xbf16>) -> tensor<4x8xbf16>
    %p = stablehlo.dot_general %row, %y, contracting_dims = [0] x [0] : (tensor<4x16xbf16>, tensor<4x8xbf16>) -> tensor<16x8xbf16>
    %sum = stablehlo.add %acc, %p : tensor<16x8xbf16>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<16x8xbf16>
  }
  return %r#1 : tensor<16x8xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.convert
