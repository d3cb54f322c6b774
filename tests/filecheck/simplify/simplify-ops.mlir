// RUN: opt --pass-pipeline='annotate,materialize-shapes,simplify-ops' --split-input-file %s | filecheck %s

// A product reads its transposed operand where it lies.
func.func @main(%x: tensor<?x?xf32, [@b, @k]>, %w: tensor<64x?xf32, [64, @k]>) -> tensor<?x64xf32, [@b, 64]> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<64x?xf32, [64, @k]>) -> tensor<?x64xf32, [@k, 64]>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @k]>, tensor<?x64xf32, [@k, 64]>) -> tensor<?x64xf32, [@b, 64]>
  return %0 : tensor<?x64xf32, [@b, 64]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1]

// -----

// Where the transpose brings free sizes into another order, the result would have them in the wrong one: it stays.
func.func @main(%x: tensor<?x?xf32, [@b, @k]>, %w: tensor<2x?x3xf32, [2, @k, 3]>) -> tensor<?x3x2xf32, [@b, 3, 2]> {
  %t = stablehlo.transpose %w, dims = [1, 2, 0] : (tensor<2x?x3xf32, [2, @k, 3]>) -> tensor<?x3x2xf32, [@k, 3, 2]>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @k]>, tensor<?x3x2xf32, [@k, 3, 2]>) -> tensor<?x3x2xf32, [@b, 3, 2]>
  return %0 : tensor<?x3x2xf32, [@b, 3, 2]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 2, 0]
// CHECK: stablehlo.dot_general %arg0, %[[T]], contracting_dims = [1] x [0]

// -----

// A maximum along a size of 1 that starts at minus infinity is a reshape; that which starts at 0 is not.
func.func @main(%x: tensor<?x1xf32, [@b, 1]>) -> (tensor<?xf32, [@b]>, tensor<?xf32, [@b]>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<?x1xf32, [@b, 1]>, tensor<f32>) -> tensor<?xf32, [@b]>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<?x1xf32, [@b, 1]>, tensor<f32>) -> tensor<?xf32, [@b]>
  return %0, %1 : tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00>
// CHECK: %[[A:.*]] = stablehlo.dynamic_reshape %arg0, {{.*}} -> tensor<?xf32, [@b]>
// CHECK: %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[ZERO]]) applies stablehlo.maximum
// CHECK: return %[[A]], %[[B]]

// -----

// A permutation and its inverse are none; two others are one.
func.func @main(%x: tensor<?x2x3xf32, [@b, 2, 3]>) -> (tensor<?x2x3xf32, [@b, 2, 3]>, tensor<3x2x?xf32, [3, 2, @b]>) {
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<?x2x3xf32, [@b, 2, 3]>) -> tensor<2x3x?xf32, [2, 3, @b]>
  %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<2x3x?xf32, [2, 3, @b]>) -> tensor<?x2x3xf32, [@b, 2, 3]>
  %2 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<2x3x?xf32, [2, 3, @b]>) -> tensor<3x2x?xf32, [3, 2, @b]>
  return %1, %2 : tensor<?x2x3xf32, [@b, 2, 3]>, tensor<3x2x?xf32, [3, 2, @b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg0, dims = [2, 1, 0]
// CHECK-NEXT: return %arg0, %[[T]]
