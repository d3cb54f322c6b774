// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Two integers of 4 bits in a byte are two rows of the weight.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<48x32xui8>, %s: tensor<48xf32>) -> tensor<?x48xf32> {
  %h = stablehlo.bitcast_convert %q : (tensor<48x32xui8>) -> tensor<48x32x2xi4>
  %r = stablehlo.reshape %h : (tensor<48x32x2xi4>) -> tensor<48x64xi4>
  %f = stablehlo.convert %r : (tensor<48x64xi4>) -> tensor<48x64xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<48xf32>) -> tensor<48x64xf32>
  %w = stablehlo.multiply %f, %b : tensor<48x64xf32>
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: xi4
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: code = 4
// CHECK-SAME: half = 1
// CHECK-SAME: step = 2

// -----

// A quantized weight, a scale for each column.
func.func @main(%x: tensor<?x4xf32>, %q: tensor<4x2x!quant.uniform<i8:f32:1, {0.5:3, 0.25:-1}>>) -> tensor<?x2xf32> {
  %w = stablehlo.uniform_dequantize %q : (tensor<4x2x!quant.uniform<i8:f32:1, {0.5:3, 0.25:-1}>>) -> tensor<4x2xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %p : tensor<?x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1,

// -----

// A weight that something else reads stays.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>) -> (tensor<?x48xf32>, tensor<64x48xf32>) {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p, %f : tensor<?x48xf32>, tensor<64x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general

// -----

// Matrices of a batch, with scales of columns of each.
func.func @main(%x: tensor<3x?x64xf32>, %q: tensor<3x64x48xi8>, %s: tensor<3x48xf32>) -> tensor<3x?x48xf32> {
  %f = stablehlo.convert %q : (tensor<3x64x48xi8>) -> tensor<3x64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<3x48xf32>) -> tensor<3x64x48xf32>
  %w = stablehlo.multiply %f, %b : tensor<3x64x48xf32>
  %p = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x?x64xf32>, tensor<3x64x48xf32>) -> tensor<3x?x48xf32>
  return %p : tensor<3x?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: matrices = 3
// CHECK-SAME: matrix = 3072
// CHECK-SAME: scale_matrix = 48

// -----

// Two products of f32 read one weight.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %s: tensor<48xf32>) -> tensor<?x64xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %w = stablehlo.multiply %f, %b : tensor<64x48xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  %p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [1] : (tensor<?x48xf32>, tensor<64x48xf32>) -> tensor<?x64xf32>
  return %p : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot
// CHECK: stablehlo.custom_call @dequantized_dot
// CHECK-NOT: stablehlo.dot_general
