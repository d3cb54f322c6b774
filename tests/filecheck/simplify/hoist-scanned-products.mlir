// RUN: opt --pass-pipeline='annotate,materialize-shapes,hoist-scanned-products' --split-input-file %s | filecheck %s

// The products of all rows are one product before the loop, and an iteration takes its row of the result.
func.func @main(%xs: tensor<?x4x16xf32, [@t, 4, 16]>, %w: tensor<16x8xf32>, %h: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.get_dimension_size %xs, dim = 0 : (tensor<?x4x16xf32, [@t, 4, 16]>) -> tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<?x4x16xf32, [@t, 4, 16]>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %p = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.add %p, %state : tensor<4x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : {{.*}} -> tensor<?x4x8xf32, [@t, 4, 8]>
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %[[STATE:.*]] = %arg2)
// CHECK: %[[S:.*]] = stablehlo.dynamic_slice %[[ALL]], %[[I]], %{{.*}}, %{{.*}}, sizes = [1, 4, 8]
// CHECK: %[[ROW:.*]] = stablehlo.reshape %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK: stablehlo.add %[[ROW]], %[[STATE]]
// CHECK: return

// -----

// An elementwise op between the slice and the product moves along.
func.func @main(%xs: tensor<10x4x16xf32>, %w: tensor<16x8xf32>, %h: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %t = stablehlo.tanh %row : tensor<4x16xf32>
    %p = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.add %p, %state : tensor<4x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.tanh %{{.*}} : tensor<10x4x16xf32>
// CHECK: %[[ALL:.*]] = stablehlo.dot_general %[[T]], %arg1, contracting_dims = [2] x [0] : {{.*}} -> tensor<10x4x8xf32>
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice %[[ALL]], {{.*}} sizes = [1, 4, 8]

// -----

// The array has a row more than the loop has iterations, and its product would be computed for nothing.
func.func @main(%xs: tensor<11x4x16xf32>, %w: tensor<16x8xf32>, %h: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<11x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %p = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.add %p, %state : tensor<4x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: %[[ROW:.*]] = stablehlo.reshape
// CHECK: stablehlo.dot_general %[[ROW]], %arg1, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>

// -----

// What is multiplied depends on the carried state, too: the product of a row has to wait for its iteration.
func.func @main(%xs: tensor<10x4x16xf32>, %w: tensor<16x16xf32>, %h: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x16xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %sum = stablehlo.add %row, %state : tensor<4x16xf32>
    %p = stablehlo.dot_general %sum, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p : tensor<i32>, tensor<4x16xf32>
  }
  return %r#1 : tensor<4x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: %[[SUM:.*]] = stablehlo.add
// CHECK: stablehlo.dot_general %[[SUM]], %arg1
