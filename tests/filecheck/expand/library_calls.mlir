// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Ops in the bodies of loops become calls too.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf64, [@n, @n]>, %[[B:\w+]]: tensor<?x?xf64, [@n, @m]>,
// CHECK-SAME: %[[C:\w+]]: tensor<i32>) -> tensor<?x?xf64, [@n, @m]> {
// CHECK-NOT: triangular_solve
// CHECK: %[[WHILE:\w+]]:2 = stablehlo.while(%{{\w+}} = %[[C]], %{{\w+}} = %[[B]])
// CHECK-SAME: : tensor<i32>, tensor<?x?xf64, [@n, @m]>
// CHECK-NEXT: cond {
// CHECK-NOT: triangular_solve
// CHECK: %[[CALL:\w+]]:2 = stablehlo.custom_call @lapack_dtrsm(%[[A]], %{{\w+}})
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f64, f64], parameters = {diag = 78 : i64, side = 76 : i64, trans_x = 78 : i64, uplo = 76 : i64}, results = [f64, ui8]}>}
// CHECK-SAME: : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> (tensor<?x?xf64, [@n, @m]>, tensor<0xui8>)
// CHECK-NEXT: stablehlo.return %{{\w+}}, %[[CALL]]#0 : tensor<i32>, tensor<?x?xf64, [@n, @m]>
// CHECK-NOT: triangular_solve
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[WHILE]]#1 : tensor<?x?xf64, [@n, @m]>
// CHECK-NEXT: return %[[ABS]] : tensor<?x?xf64, [@n, @m]>
func.func @main(%a: tensor<?x?xf64, [@n, @n]>, %b: tensor<?x?xf64, [@n, @m]>, %k: tensor<i32>) -> tensor<?x?xf64> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %k, %x = %b) : tensor<i32>, tensor<?x?xf64, [@n, @m]>
    cond {
      %1 = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.subtract %i, %one : tensor<i32>
      %2 = "stablehlo.triangular_solve"(%a, %x) <{left_side = true, lower = true,
          transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>
              : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64, [@n, @m]>
      stablehlo.return %1, %2 : tensor<i32>, tensor<?x?xf64, [@n, @m]>
    }
  %3 = stablehlo.abs %0#1 : (tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64>
  return %3 : tensor<?x?xf64>
}

// -----

// One after the other, each by the function of its family.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf64, [@n, @n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64, [@n, @m]> {
// CHECK-NOT: stablehlo.cholesky
// CHECK-NOT: triangular_solve
// CHECK: stablehlo.custom_call @lapack_dpotrf(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f64], parameters = {uplo = 76 : i64}, results = [f64, i32, ui8]}>} : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64, [@n, @n]>, tensor<i32>, tensor<0xui8>)
// CHECK-NOT: stablehlo.cholesky
// CHECK-NOT: triangular_solve
// CHECK: %[[CALL:\w+]]:2 = stablehlo.custom_call @lapack_dtrsm(%{{\w+}},
// CHECK-SAME: %[[B]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [f64, f64], parameters = {diag = 78 : i64, side = 76 : i64, trans_x = 78 : i64, uplo = 76 : i64}, results = [f64, ui8]}>}
// CHECK-SAME: : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> (tensor<?x?xf64, [@n, @m]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?x?xf64, [@n, @m]>
func.func @main(%a: tensor<?x?xf64, [@n, @n]>, %b: tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64> {
  %0 = stablehlo.cholesky %a, lower = true : (tensor<?x?xf64, [@n, @n]>) -> tensor<?x?xf64, [@n, @n]>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true,
          transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>
              : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// A call that no family knows is refused.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @example.inverse at line {{[0-9]+}}: this custom call has no lowering; register a native function for it with shlo_disc.register_custom_call
func.func @main(%a: tensor<?x?xf64, [@n, @n]>) -> tensor<?x?xf64> {
  %0 = stablehlo.custom_call @example.inverse(%a) : (tensor<?x?xf64, [@n, @n]>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}
