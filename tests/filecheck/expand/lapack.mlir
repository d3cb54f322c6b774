// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Matrices are turned around a call that reads them column by column; the workspace is one for each slot.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@b, @m, @n]>) -> (tensor<?x?x?xf32, [@b, @m, @n]>, tensor<?x?xf32, [@b, @"min(m, n)"]>) {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [0, 2, 1] : (tensor<?x?x?xf32, [@b, @m, @n]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @n, @m]>
// CHECK-NEXT: %[[CALL:\w+]]:3 = stablehlo.custom_call @lapack_sgeqrf(%[[TRANSPOSE]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], results = [f32, f32, ui8]}>}
// CHECK-SAME: : (tensor<?x?x?xf32, [@b, @n, @m]>) -> (tensor<?x?x?xf32, [@b, @n, @m]>,
// CHECK-SAME: tensor<?x?xf32, [@b, @"min(m, n)"]>, tensor<?xui8, [@"128*n*min(16, b) + 128*min(16, b)"]>)
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[CALL]]#0, dims = [0, 2, 1]
// CHECK-SAME: : (tensor<?x?x?xf32, [@b, @n, @m]>) -> tensor<?x?x?xf32, [@b, @m, @n]>
// CHECK-NEXT: return %[[TRANSPOSE2]], %[[CALL]]#1 : tensor<?x?x?xf32, [@b, @m, @n]>,
// CHECK-SAME: tensor<?x?xf32, [@b, @"min(m, n)"]>
func.func @main(%a: tensor<?x?x?xf32, [@b, @m, @n]>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
  %0:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%a) {api_version = 4 : i32,
      operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
      result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>]}
          : (tensor<?x?x?xf32, [@b, @m, @n]>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %0#0, %0#1 : tensor<?x?x?xf32>, tensor<?x?xf32>
}

// -----

// The runtime's Cholesky factor reads matrices row by row, and needs no workspace.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64, [@n, @n]>, tensor<i32>) {
// CHECK-NEXT: %[[CALL:\w+]]:3 = stablehlo.custom_call @lapack_dpotrf(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f64], parameters = {uplo = 76 : i64}, results = [f64, i32, ui8]}>} : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64, [@n, @n]>, tensor<i32>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0, %[[CALL]]#1 : tensor<?x?xf64, [@n, @n]>, tensor<i32>
func.func @main(%a: tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf64>, tensor<i32>
}

// -----

// The workspace of eigenvalues grows with the square of the size.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<i32>) {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: %[[CALL:\w+]]:4 = stablehlo.custom_call @lapack_ssyevd(%[[TRANSPOSE]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], parameters = {mode = 86 : i64, uplo = 76 : i64}, results = [f32, f32, i32, ui8]}>} : (tensor<?x?xf32, [@n, @n]>)
// CHECK-SAME: -> (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<i32>,
// CHECK-SAME: tensor<?xui8, [@"64*floordiv(2*n^2 + 43*n + 4, 16) + 192"]>)
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[CALL]]#0, dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: return %[[TRANSPOSE2]], %[[CALL]]#1, %[[CALL]]#2
// CHECK-SAME: : tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<i32>
func.func @main(%a: tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a)
      {api_version = 4 : i32, mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<i32>
}

// -----

// Complex matrices are turned in two parts, and interleaved for the call.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x?x2xf32, [@n, @n, 2]>) -> (tensor<?x?x2xf32, [@n, @n, 2]>, tensor<?xf32, [@n]>, tensor<i32>) {
// CHECK-NOT: _ffi
// CHECK: stablehlo.transpose %{{\w+}}, dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: stablehlo.transpose %{{\w+}}, dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NOT: _ffi
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x?x1xf32, [@n, @n, 1]>, tensor<?x?x1xf32, [@n, @n, 1]>) -> tensor<?x?x2xf32, [@n, @n, 2]>
// CHECK-NEXT: %[[CALL:\w+]]:4 = stablehlo.custom_call @lapack_cheevd(%[[CONCATENATE]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {mode = 86 : i64, uplo = 76 : i64}, results = [complex<f32>, f32, i32, ui8]}>} : (tensor<?x?x2xf32, [@n, @n, 2]>)
// CHECK-SAME: -> (tensor<?x?x2xf32, [@n, @n, 2]>, tensor<?xf32, [@n]>, tensor<i32>,
// CHECK-SAME: tensor<?xui8, [@"64*floordiv(2*n^2 + 39*n + 2, 8) + 192"]>)
// CHECK-NOT: _ffi
// CHECK: stablehlo.transpose %{{\w+}}, dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: stablehlo.transpose %{{\w+}}, dims = [1, 0] : (tensor<?x?xf32, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NOT: _ffi
// CHECK: %[[CONCATENATE2:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x?x1xf32, [@n, @n, 1]>, tensor<?x?x1xf32, [@n, @n, 1]>) -> tensor<?x?x2xf32, [@n, @n, 2]>
// CHECK-NEXT: return %[[CONCATENATE2]], %[[CALL]]#1, %[[CALL]]#2
// CHECK-SAME: : tensor<?x?x2xf32, [@n, @n, 2]>, tensor<?xf32, [@n]>, tensor<i32>
func.func @main(%a: tensor<?x?xcomplex<f32>, [@n, @n]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_cheevd_ffi(%a)
      {api_version = 4 : i32, mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xcomplex<f32>, [@n, @n]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>
}

// -----

// Matrices have to be laid out column by column.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @lapack_dpotrf_ffi at line {{[0-9]+}}: LAPACK needs matrices that are laid out column by column
func.func @main(%a: tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {uplo = 76 : ui8},
      operand_layouts = [dense<[1, 0]> : tensor<2xindex>],
      result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf64>, tensor<i32>
}

// -----

// A function has one element type.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @lapack_dpotrf_ffi at line {{[0-9]+}}: potrf needs a tensor of f64 and rank 2, not tensor<?x?xf32, [@n, @n]>
func.func @main(%a: tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<i32>
}

// -----

// A parameter that says which triangle is one of two letters.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @lapack_dpotrf_ffi at line {{[0-9]+}}: the parameter uplo of potrf must be one of the letters L, U
func.func @main(%a: tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {uplo = 88 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf64>, tensor<i32>
}

// -----

// A function that the runtime does not have is no library call.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @lapack_dpotri_ffi at line {{[0-9]+}}: this custom call has no lowering; register a native function for it with shlo_disc.register_custom_call
func.func @main(%a: tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotri_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<?x?xf64, [@n, @n]>) -> (tensor<?x?xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf64>, tensor<i32>
}
