// RUN: opt --pass-pipeline='annotate,materialize-shapes,fuse-dequantized-products' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// Sides and scales keep their types. Behind them is the weight as floats, without rows where those of the product are at most 64.
func.func @main(%x: tensor<?x64xbf16>, %q: tensor<64x48xi8>, %s: tensor<48xbf16>) -> tensor<?x48xbf16> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xbf16>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<48xbf16>) -> tensor<64x48xbf16>
  %w = stablehlo.multiply %f, %b : tensor<64x48xbf16>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xbf16>, tensor<64x48xbf16>) -> tensor<?x48xbf16>
  return %p : tensor<?x48xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = stablehlo.dynamic_reshape {{.*}} -> tensor<?x48xbf16, {{.*}}floordiv(64, max(1, arg0_d0))
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2, %[[W]])
// CHECK-SAME: rounding = 1
// CHECK-NOT: stablehlo.dot_general

// -----

// Rows that are known to be few have no weight as floats. The precision of a product is that of the call.
func.func @main(%x: tensor<64x64xf32>, %q: tensor<64x48xi8>) -> tensor<64x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
  return %p : tensor<64x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1) {
// CHECK-SAME: disc.precision = "tf32"

// -----

// Rows that are known to be many multiply a weight that is written.
func.func @main(%x: tensor<65x64xf32>, %q: tensor<64x48xi8>) -> tensor<65x48xf32> {
  %f = stablehlo.convert %q : (tensor<64x48xi8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<65x64xf32>, tensor<64x48xf32>) -> tensor<65x48xf32>
  return %p : tensor<65x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general

// -----

// Two integers in a byte, in groups: shifts take the place of what the program concatenates, and nothing is concatenated.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<32x48xui8>, %s: tensor<2x48xf32>) -> tensor<?x48xf32> {
  %four = stablehlo.constant dense<4> : tensor<32x48xui8>
  %mask = stablehlo.constant dense<15> : tensor<32x48xui8>
  %low = stablehlo.and %q, %mask : tensor<32x48xui8>
  %high = stablehlo.shift_right_logical %q, %four : tensor<32x48xui8>
  %l = stablehlo.reshape %low : (tensor<32x48xui8>) -> tensor<32x1x48xui8>
  %h = stablehlo.reshape %high : (tensor<32x48xui8>) -> tensor<32x1x48xui8>
  %both = stablehlo.concatenate %l, %h, dim = 1 : (tensor<32x1x48xui8>, tensor<32x1x48xui8>) -> tensor<32x2x48xui8>
  %r = stablehlo.reshape %both : (tensor<32x2x48xui8>) -> tensor<2x32x48xui8>
  %f = stablehlo.convert %r : (tensor<2x32x48xui8>) -> tensor<2x32x48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<2x48xf32>) -> tensor<2x32x48xf32>
  %m = stablehlo.multiply %f, %b : tensor<2x32x48xf32>
  %w = stablehlo.reshape %m : (tensor<2x32x48xf32>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.broadcast_in_dim {{.*}} : (tensor<2x16x48xui8>) -> tensor<2x16x2x48xui8>
// CHECK: stablehlo.iota dim = 2 : tensor<2x16x2x48xui8>
// CHECK: stablehlo.and {{.*}} : tensor<2x16x2x48xui8>
// CHECK: stablehlo.broadcast_in_dim {{.*}}, dims = [0, 3] : (tensor<2x48xf32>) -> tensor<2x16x2x48xf32>
// CHECK: %[[W:.*]] = stablehlo.dynamic_reshape {{.*}} -> tensor<?x48xf32,
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2, %[[W]])
