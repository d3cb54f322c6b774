// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// The lower factor by a call: its other triangle is zero, and all is NaN where the call reports a failure.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@b, @n, @n]>) -> tensor<?x?x?xf32, [@b, @n, @n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0x7FC00000> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[CONSTANT3:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.cholesky
// CHECK: %[[CALL:\w+]]:3 = stablehlo.custom_call @lapack_spotrf(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], parameters = {uplo = 76 : i64}, results = [f32, i32, ui8]}>} : (tensor<?x?x?xf32, [@b, @n, @n]>) -> (tensor<?x?x?xf32, [@b, @n, @n]>,
// CHECK-SAME: tensor<?xi32, [@b]>, tensor<0xui8>)
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, @n, @n]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[IOTA:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 1 : (tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x?xi32, [@b, @n, @n]>
// CHECK-NEXT: %[[IOTA2:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 2 : (tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x?xi32, [@b, @n, @n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GE, %[[IOTA]], %[[IOTA2]]
// CHECK-SAME: : (tensor<?x?x?xi32, [@b, @n, @n]>, tensor<?x?x?xi32, [@b, @n, @n]>) -> tensor<?x?x?xi1, [@b, @n, @n]>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT3]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<3xi64>) -> tensor<?x?x?xf32, [@b, @n, @n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[CALL]]#0, %[[BROADCAST]]
// CHECK-SAME: : tensor<?x?x?xi1, [@b, @n, @n]>, tensor<?x?x?xf32, [@b, @n, @n]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@b]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<i32>, tensor<1xi64>) -> tensor<?xi32, [@b]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare NE, %[[CALL]]#1, %[[BROADCAST2]]
// CHECK-SAME: : (tensor<?xi32, [@b]>, tensor<?xi32, [@b]>) -> tensor<?xi1, [@b]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[COMPARE2]], %[[SHAPE]], dims = [0]
// CHECK-SAME: : (tensor<?xi1, [@b]>, tensor<3xi64>) -> tensor<?x?x?xi1, [@b, @n, @n]>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<3xi64>) -> tensor<?x?x?xf32, [@b, @n, @n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[BROADCAST3]], %[[BROADCAST4]], %[[SELECT]]
// CHECK-SAME: : tensor<?x?x?xi1, [@b, @n, @n]>, tensor<?x?x?xf32, [@b, @n, @n]>
// CHECK-NEXT: return %[[SELECT2]] : tensor<?x?x?xf32, [@b, @n, @n]>
func.func @main(%a: tensor<?x?x?xf32, [@b, @n, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.cholesky %a, lower = true : (tensor<?x?x?xf32, [@b, @n, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// The upper factor of halves: computed in f32, with the other comparison.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf16, [@n, @n]>) -> tensor<?x?xf16, [@n, @n]> {
// CHECK-NOT: stablehlo.cholesky
// CHECK: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xf16, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: %[[CALL:\w+]]:3 = stablehlo.custom_call @lapack_spotrf(%[[CONVERT]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], parameters = {uplo = 85 : i64}, results = [f32, i32, ui8]}>} : (tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32, [@n, @n]>, tensor<i32>, tensor<0xui8>)
// CHECK-NOT: stablehlo.cholesky
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare LE, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x?xi32, [@n, @n]>, tensor<?x?xi32, [@n, @n]>) -> tensor<?x?xi1, [@n, @n]>
// CHECK-NOT: stablehlo.cholesky
// CHECK: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[CALL]]#0, %{{\w+}}
// CHECK-SAME: : tensor<?x?xi1, [@n, @n]>, tensor<?x?xf32, [@n, @n]>
// CHECK-NOT: stablehlo.cholesky
// CHECK: %[[SELECT2:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %[[SELECT]]
// CHECK-SAME: : tensor<?x?xi1, [@n, @n]>, tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[SELECT2]] : (tensor<?x?xf32, [@n, @n]>)
// CHECK-SAME: -> tensor<?x?xf16, [@n, @n]>
// CHECK-NEXT: return %[[CONVERT2]] : tensor<?x?xf16, [@n, @n]>
func.func @main(%a: tensor<?x?xf16, [@n, @n]>) -> tensor<?x?xf16> {
  %0 = stablehlo.cholesky %a : (tensor<?x?xf16, [@n, @n]>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}

// -----

// A solve by a call, whose parameters are letters: L, L, T and U.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf64, [@n, @n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64, [@n, @m]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @lapack_dtrsm(%[[A]],
// CHECK-SAME: %[[B]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [f64, f64], parameters = {diag = 85 : i64, side = 76 : i64, trans_x = 84 : i64, uplo = 76 : i64}, results = [f64, ui8]}>}
// CHECK-SAME: : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> (tensor<?x?xf64, [@n, @m]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?x?xf64, [@n, @m]>
func.func @main(%a: tensor<?x?xf64, [@n, @n]>, %b: tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64> {
  %0 = "stablehlo.triangular_solve"(%a, %b)
      <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = true}>
      : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}

// -----

// From the right, of halves: in f32, with R, U, C and N.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xbf16, [@n, @n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xbf16, [@m, @n]>) -> tensor<?x?xbf16, [@m, @n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xbf16, [@n, @n]>) -> tensor<?x?xf32, [@n, @n]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?x?xbf16, [@m, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @lapack_strsm(%[[CONVERT]],
// CHECK-SAME: %[[CONVERT2]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32, f32], parameters = {diag = 78 : i64, side = 82 : i64, trans_x = 67 : i64, uplo = 85 : i64}, results = [f32, ui8]}>}
// CHECK-SAME: : (tensor<?x?xf32, [@n, @n]>, tensor<?x?xf32, [@m, @n]>) -> (tensor<?x?xf32, [@m, @n]>, tensor<0xui8>)
// CHECK-NEXT: %[[CONVERT3:\w+]] = stablehlo.convert %[[CALL]]#0 : (tensor<?x?xf32, [@m, @n]>)
// CHECK-SAME: -> tensor<?x?xbf16, [@m, @n]>
// CHECK-NEXT: return %[[CONVERT3]] : tensor<?x?xbf16, [@m, @n]>
func.func @main(%a: tensor<?x?xbf16, [@n, @n]>, %b: tensor<?x?xbf16, [@m, @n]>) -> tensor<?x?xbf16> {
  %0 = "stablehlo.triangular_solve"(%a, %b)
      <{left_side = false, lower = false, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}>
      : (tensor<?x?xbf16, [@n, @n]>, tensor<?x?xbf16, [@m, @n]>) -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

// -----

// Complex sides are interleaved for the call.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x?x2xf64, [@n, @n, 2]>,
// CHECK-SAME: %{{\w+}}: tensor<?x?x2xf64, [@n, @m, 2]>) -> tensor<?x?x2xf64, [@n, @m, 2]> {
// CHECK-NOT: stablehlo.triangular_solve
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x?x1xf64, [@n, @n, 1]>, tensor<?x?x1xf64, [@n, @n, 1]>) -> tensor<?x?x2xf64, [@n, @n, 2]>
// CHECK-NEXT: %[[CONCATENATE2:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x?x1xf64, [@n, @m, 1]>, tensor<?x?x1xf64, [@n, @m, 1]>) -> tensor<?x?x2xf64, [@n, @m, 2]>
// CHECK-NEXT: stablehlo.custom_call @lapack_ztrsm(%[[CONCATENATE]],
// CHECK-SAME: %[[CONCATENATE2]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f64>, complex<f64>], parameters = {diag = 78 : i64, side = 76 : i64, trans_x = 78 : i64, uplo = 76 : i64}, results = [complex<f64>, ui8]}>} : (tensor<?x?x2xf64, [@n, @n, 2]>,
// CHECK-SAME: tensor<?x?x2xf64, [@n, @m, 2]>) -> (tensor<?x?x2xf64, [@n, @m, 2]>, tensor<0xui8>)
// CHECK-NOT: stablehlo.triangular_solve
// CHECK: return %{{\w+}} : tensor<?x?x2xf64, [@n, @m, 2]>
func.func @main(%a: tensor<?x?xcomplex<f64>, [@n, @n]>, %b: tensor<?x?xcomplex<f64>, [@n, @m]>)
    -> tensor<?x?xcomplex<f64>> {
  %0 = "stablehlo.triangular_solve"(%a, %b)
      <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>,
      unit_diagonal = false}> : (tensor<?x?xcomplex<f64>, [@n, @n]>, tensor<?x?xcomplex<f64>, [@n, @m]>)
      -> tensor<?x?xcomplex<f64>>
  return %0 : tensor<?x?xcomplex<f64>>
}

// -----

// Only floats and complex numbers are solved for.
// CHECK-LABEL: error: the program cannot be parsed: line
// CHECK-SAME: 'stablehlo.cholesky' op operand #0 must be ranked tensor of 4/6/8/16/32/64-bit float or complex type with 32/64-bit float elements or per-tensor integer quantized values, but got 'tensor<?x?xi32, [@n, @n]>'
func.func @main(%a: tensor<?x?xi32, [@n, @n]>) -> tensor<?x?xi32> {
  %0 = stablehlo.cholesky %a, lower = true : (tensor<?x?xi32, [@n, @n]>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}

// -----

// A matrix that is not square is refused.
// CHECK-LABEL: error: the program cannot be parsed: line
// CHECK-SAME: minor dimensions of 'a' must have equal size, got shape 3, 4.
func.func @main(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.cholesky %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// The factor of a complex matrix is complex.
func.func @main(%a: tensor<?x?xcomplex<f32>, [@n, @n]>) -> tensor<?x?xcomplex<f32>> {
  %0 = stablehlo.cholesky %a, lower = true : (tensor<?x?xcomplex<f32>, [@n, @n]>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.cholesky
// CHECK: stablehlo.custom_call @lapack_cpotrf(
