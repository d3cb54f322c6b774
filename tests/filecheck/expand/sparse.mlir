// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Starts are counted where they stand; their running sum is one more than the row of each element.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[DATA:\w+]]: tensor<?xf32, [@z]>, %[[STARTS:\w+]]: tensor<?xi32, [@s]>, %[[COLUMNS:\w+]]: tensor<?xi32, [@z]>,
// CHECK-SAME: %[[X:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@"s - 1", @n]> {
// CHECK-NOT: custom_call
// CHECK: %[[COUNTS:\w+]] = "stablehlo.scatter"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK: %[[BEGUN:\w+]] = "stablehlo.reduce_window"(%[[COUNTS]], %{{\w+}})
// CHECK: stablehlo.subtract %[[BEGUN]], %{{\w+}} : tensor<?xi32, [@z]>
// CHECK: "stablehlo.scatter"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK: tensor<?x?xf32, [@"s - 1", @n]>
func.func @main(%d: tensor<?xf32, [@z]>, %s: tensor<?xi32, [@s]>, %c: tensor<?xi32, [@z]>, %x: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%d, %s, %c, %x) : (tensor<?xf32, [@z]>, tensor<?xi32, [@s]>, tensor<?xi32, [@z]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Rows and columns have one type.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @cpu_csr_sparse_dense_ffi at line {{[0-9]+}}: the rows and columns of a sparse matrix are i32, or i64
func.func @main(%d: tensor<7xf32>, %s: tensor<3xi64>, %c: tensor<7xi32>, %x: tensor<4xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%d, %s, %c, %x) : (tensor<7xf32>, tensor<3xi64>, tensor<7xi32>, tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
