// RUN: opt --pass-pipeline='annotate,pre-transpose-weights' --split-input-file %s | filecheck %s

// A matrix from outside, by whose rows the loop multiplies, is transposed before the loop.
func.func @main(%h: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %state, %w, contracting_dims = [1] x [1] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
// CHECK: stablehlo.while({{.*}}, %[[STATE:.*]] = %arg0)
// CHECK: stablehlo.dot_general %[[STATE]], %[[T]], contracting_dims = [1] x [0]

// -----

// One of more than 2^18 elements is not, nor one of unknown size.
func.func @main(%h: tensor<4x513xf32>, %g: tensor<4x?xf32, [4, @k]>, %v: tensor<513x513xf32>, %w: tensor<?x?xf32, [@k, @k]>) -> (tensor<4x513xf32>, tensor<4x?xf32, [4, @k]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %h, %b = %g) : tensor<i32>, tensor<4x513xf32>, tensor<4x?xf32, [4, @k]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %a, %v, contracting_dims = [1] x [1] : (tensor<4x513xf32>, tensor<513x513xf32>) -> tensor<4x513xf32>
    %q = stablehlo.dot_general %b, %w, contracting_dims = [1] x [1] : (tensor<4x?xf32, [4, @k]>, tensor<?x?xf32, [@k, @k]>) -> tensor<4x?xf32, [4, @k]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p, %q : tensor<i32>, tensor<4x513xf32>, tensor<4x?xf32, [4, @k]>
  }
  return %r#1, %r#2 : tensor<4x513xf32>, tensor<4x?xf32, [4, @k]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.while({{.*}}, %[[A:.*]] = %arg0, %[[B:.*]] = %arg1)
// CHECK: stablehlo.dot_general %[[A]], %arg2, contracting_dims = [1] x [1]
// CHECK: stablehlo.dot_general %[[B]], %arg3, contracting_dims = [1] x [1]

// -----

// A matrix by whose columns the loop multiplies lies as it should, and outside of loops there is nothing to save.
func.func @main(%h: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %first = stablehlo.dot_general %h, %w, contracting_dims = [1] x [1] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
  %r:2 = stablehlo.while(%i = %zero, %state = %first) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %state, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %p : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %r#1 : tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: %[[FIRST:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1]
// CHECK: stablehlo.while({{.*}}, %[[STATE:.*]] = %[[FIRST]])
// CHECK: stablehlo.dot_general %[[STATE]], %arg1, contracting_dims = [1] x [0]
