// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Integers of 4 bits are places in a table of 16 floats.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xui4>, %t: tensor<16xf32>) -> tensor<?x48xf32> {
  %i = stablehlo.convert %q : (tensor<64x48xui4>) -> tensor<64x48xi32>
  %r = stablehlo.reshape %i : (tensor<64x48xi32>) -> tensor<64x48x1xi32>
  %w = "stablehlo.gather"(%t, %r) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<64x48x1xi32>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.gather
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: code = 8
// CHECK-SAME: table = 2

// -----

// Places are clamped to the table: bytes past its end are the last.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xui8>, %t: tensor<16xf32>) -> tensor<?x48xf32> {
  %r = stablehlo.reshape %q : (tensor<64x48xui8>) -> tensor<64x48x1xui8>
  %w = "stablehlo.gather"(%t, %r) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<64x48x1xui8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @dequantized_dot(%arg0, %arg1, %arg2)
// CHECK-SAME: code = 10

// -----

// A table of more places stays.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xui8>, %t: tensor<256xf32>) -> tensor<?x48xf32> {
  %r = stablehlo.reshape %q : (tensor<64x48xui8>) -> tensor<64x48x1xui8>
  %w = "stablehlo.gather"(%t, %r) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<256xf32>, tensor<64x48x1xui8>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.gather

// -----

// So does a lookup of what is no function of one integer.
func.func @main(%x: tensor<?x64xf32>, %q: tensor<64x48xui4>, %z: tensor<64x48xi32>, %t: tensor<16xf32>) -> tensor<?x48xf32> {
  %i = stablehlo.convert %q : (tensor<64x48xui4>) -> tensor<64x48xi32>
  %j = stablehlo.add %i, %z : tensor<64x48xi32>
  %r = stablehlo.reshape %j : (tensor<64x48xi32>) -> tensor<64x48x1xi32>
  %w = "stablehlo.gather"(%t, %r) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<64x48x1xi32>) -> tensor<64x48xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
  return %p : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.gather
