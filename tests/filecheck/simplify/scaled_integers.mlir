// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Quotients are products with reciprocals, which the function compares with the divisors.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %s: tensor<48xf32>) -> tensor<?x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %w = stablehlo.divide %f, %b : tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[ONE_BY:.*]] = stablehlo.divide
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %[[ONE_BY]], %arg2)
// CHECK-SAME: divisor = 3

// -----

// A bias is added to scaled integers.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %s: tensor<48xf32>, %z: tensor<48xf32>) -> tensor<?x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %m = stablehlo.multiply %f, %b : tensor<64x48xf32>
  %c = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %w = stablehlo.add %m, %c : tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME: adds_zeros = 1

// -----

// Scales of rows.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xi8>, %s: tensor<64xf32>) -> tensor<?x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<64xf32>) -> tensor<64x48xf32>
  %w = stablehlo.multiply %f, %b : tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: columns = 48
// CHECK-SAME: group = 1

// -----

// In bf16, products are rounded before a bias is added.
func.func @main(%x: tensor<?x64xbf16>, %q: tensor<64x48xi8>, %s: tensor<48xbf16>, %z: tensor<48xbf16>) -> tensor<?x48xbf16> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xbf16>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xbf16>) -> tensor<64x48xbf16>
  %m = stablehlo.multiply %f, %b : tensor<64x48xbf16>
  %c = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<48xbf16>) -> tensor<64x48xbf16>
  %w = stablehlo.add %m, %c : tensor<64x48xbf16>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xbf16>, tensor<64x48xbf16>) -> tensor<?x48xbf16>
  return %p : tensor<?x48xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general

// -----

// Quotients in f16 may be rounded otherwise than products with reciprocals.
func.func @main(%x: tensor<?x64xf16>, %q: tensor<64x48xi8>, %s: tensor<48xf16>) -> tensor<?x48xf16> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf16>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xf16>) -> tensor<64x48xf16>
  %w = stablehlo.divide %f, %b : tensor<64x48xf16>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf16>, tensor<64x48xf16>) -> tensor<?x48xf16>
  return %p : tensor<?x48xf16>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general
