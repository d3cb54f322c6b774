// RUN: opt --pass-pipeline='annotate,materialize-shapes,fuse-dequantized-products' --split-input-file %s | filecheck %s

// A scale for each column: the call reads the integers where they lie.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %s: tensor<48xf32>) -> tensor<?x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %w = stablehlo.multiply %f, %b : tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: code = 0
// CHECK-SAME: group = 64
// CHECK-NOT: stablehlo.dot_general

// -----

// Groups of 32 rows and a zero point, with the weight on the left and its columns dense: the result is transposed.
func.func @main(%x: tensor<64x?xf32>, %q: tensor<48x64xui8>, %z: tensor<48x2xui8>, %s: tensor<48x2xf32>) -> tensor<48x?xf32> {
  %r = stablehlo.reshape %q : (tensor<48x64xui8>) -> tensor<48x2x32xui8>
  %i = stablehlo.convert %r : (tensor<48x2x32xui8>) -> tensor<48x2x32xi32>
  %j = stablehlo.convert %z : (tensor<48x2xui8>) -> tensor<48x2xi32>
  %k = stablehlo.broadcast_in_dim %j, dims = [0, 1] : (tensor<48x2xi32>) -> tensor<48x2x32xi32>
  %d = stablehlo.subtract %i, %k : tensor<48x2x32xi32>
  %f = stablehlo.convert %d : (tensor<48x2x32xi32>) -> tensor<48x2x32xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<48x2xf32>) -> tensor<48x2x32xf32>
  %m = stablehlo.multiply %b, %f : tensor<48x2x32xf32>
  %w = stablehlo.reshape %m : (tensor<48x2x32xf32>) -> tensor<48x64xf32>
  %p = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<48x64xf32>, tensor<64x?xf32>) -> tensor<48x?xf32>
  return %p : tensor<48x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK: %[[P:.*]]:2 = stablehlo.custom_call @dequantized_dot(%[[X]], %arg1, %arg3, %arg2)
// CHECK-SAME: dense_columns = 1
// CHECK-SAME: group = 32
// CHECK: stablehlo.transpose %[[P]]#0, dims = [1, 0]

// -----

// A subtraction that may wrap stays.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %z: tensor<64x48xi8>) -> tensor<?x48xf32> {
  %d = stablehlo.subtract %q, %z : tensor<64x48xi8>
  %f = stablehlo.convert %d : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general
