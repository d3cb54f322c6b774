// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// The result has a row for each start but the last, and the columns of the other matrix.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main({{.*}}) -> tensor<?x?xf32, [@"s - 1", @n]>
func.func @main(%d: tensor<?xf32, [@z]>, %s: tensor<?xi32, [@s]>, %c: tensor<?xi32, [@z]>, %x: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%d, %s, %c, %x) : (tensor<?xf32, [@z]>, tensor<?xi32, [@s]>, tensor<?xi32, [@z]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Each stored element has a column.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes 7 and 8 must be equal and never are
func.func @main(%d: tensor<7xf32>, %s: tensor<3xi32>, %c: tensor<8xi32>, %x: tensor<4xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%d, %s, %c, %x) : (tensor<7xf32>, tensor<3xi32>, tensor<8xi32>, tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
