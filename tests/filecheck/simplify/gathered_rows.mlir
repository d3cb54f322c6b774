// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A product reads the integers, and an embedding rows of them.
func.func @main(%x: tensor<?x32xf32>, %i: tensor<?x1xi32>, %q: tensor<96x32xi8>, %s: tensor<96xf32>) -> (tensor<?x96xf32>, tensor<?x32xf32>) {
  %f = stablehlo.convert %q : (tensor<96x32xi8>) -> tensor<96x32xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<96xf32>) -> tensor<96x32xf32>
  %w = stablehlo.multiply %f, %b : tensor<96x32xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<?x32xf32>, tensor<96x32xf32>) -> tensor<?x96xf32>
  %g = "stablehlo.gather"(%w, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}> : (tensor<96x32xf32>, tensor<?x1xi32>) -> tensor<?x32xf32>
  return %p, %g : tensor<?x96xf32>, tensor<?x32xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-DAG: stablehlo.custom_call @dequantized_dot(%arg0, %arg2, %arg3)
// CHECK-DAG: "stablehlo.gather"(%arg2, %arg1)
// CHECK-DAG: "stablehlo.gather"(%arg3, %arg1)

// -----

// A gather of columns needs all rows.
func.func @main(%x: tensor<?x32xf32>, %i: tensor<?x1xi32>, %q: tensor<96x32xi8>, %s: tensor<96xf32>) -> (tensor<?x96xf32>, tensor<96x?xf32>) {
  %f = stablehlo.convert %q : (tensor<96x32xi8>) -> tensor<96x32xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<96xf32>) -> tensor<96x32xf32>
  %w = stablehlo.multiply %f, %b : tensor<96x32xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<?x32xf32>, tensor<96x32xf32>) -> tensor<?x96xf32>
  %g = "stablehlo.gather"(%w, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 96, 1>}> : (tensor<96x32xf32>, tensor<?x1xi32>) -> tensor<96x?xf32>
  return %p, %g : tensor<?x96xf32>, tensor<96x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general
