// RUN: opt --pass-pipeline='annotate,simplify,fuse,read-panels' --split-input-file %s | filecheck %s

// Rows of a table that a product multiplies by: the kernel finds them in the table or in its packed form.
func.func @main(%table: tensor<50x64xf32>, %tokens: tensor<?x1xi32>) -> tensor<?x50xf32> {
  %x = "stablehlo.gather"(%table, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<50x64xf32>, tensor<?x1xi32>) -> tensor<?x64xf32>
  %y = stablehlo.tanh %x : tensor<?x64xf32>
  %z = stablehlo.dot_general %y, %table, contracting_dims = [1] x [1] : (tensor<?x64xf32>, tensor<50x64xf32>) -> tensor<?x50xf32>
  return %z : tensor<?x50xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: call @loop_{{.*}}(%arg0, %arg1) {disc.panels = array<i64: 0>}
// CHECK: call @dot_{{[0-9]+}}(

// -----

// A table that is multiplied by along its rows has them across its panels.
func.func @main(%table: tensor<64x64xf32>, %tokens: tensor<?x1xi32>) -> tensor<?x64xf32> {
  %x = "stablehlo.gather"(%table, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<64x64xf32>, tensor<?x1xi32>) -> tensor<?x64xf32>
  %y = stablehlo.tanh %x : tensor<?x64xf32>
  %z = stablehlo.dot_general %y, %table, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: disc.panels
