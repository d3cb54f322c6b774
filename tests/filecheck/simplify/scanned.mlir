// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// The product of each step's input with the weights is one product of all of them, before the loop.
func.func @main(%xs: tensor<10x4x16xf32>, %w: tensor<16x8xf32>, %u: tensor<8x8xf32>, %h: tensor<4x8xf32>) -> tensor<4x8xf32> {
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
    %p = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %q = stablehlo.dot_general %state, %u, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %sum = stablehlo.add %p, %q : tensor<4x8xf32>
    %new = stablehlo.tanh %sum : tensor<4x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x8xf32>
  }
  return %r#1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : {{.*}} -> tensor<10x4x8xf32>
// CHECK: stablehlo.while(%[[I:.*]] = %c,
// CHECK: stablehlo.dynamic_slice %[[ALL]], %[[I]], %c, %c, sizes = [1, 4, 8]
// CHECK-NOT: %arg1
// CHECK: return

// -----

// Where the loop may end early, the products of later steps are not there to be had.
func.func @main(%xs: tensor<10x4x16xf32>, %w: tensor<16x8xf32>, %h: tensor<4x8xf32>, %n: tensor<i32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
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
// CHECK: stablehlo.dot_general

// -----

// Weights that the loop carries change from step to step.
func.func @main(%xs: tensor<10x4x16xf32>, %w: tensor<16x8xf32>, %h: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %state = %h, %v = %w) : tensor<i32>, tensor<4x8xf32>, tensor<16x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %p = stablehlo.dot_general %row, %v, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %new = stablehlo.add %p, %state : tensor<4x8xf32>
    %v2 = stablehlo.tanh %v : tensor<16x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new, %v2 : tensor<i32>, tensor<4x8xf32>, tensor<16x8xf32>
  }
  return %r#1, %r#2 : tensor<4x8xf32>, tensor<16x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
