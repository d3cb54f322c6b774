// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A call of the runtime, which reads and writes interleaved values; its workspace is for eight lines at a time.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x8x2xf32, [@b, 8, 2]>) -> tensor<?x8x2xf32, [@b, 8, 2]> {
// CHECK-NOT: stablehlo.fft
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x8x1xf32, [@b, 8, 1]>, tensor<?x8x1xf32, [@b, 8, 1]>) -> tensor<?x8x2xf32, [@b, 8, 2]>
// CHECK-NEXT: stablehlo.custom_call @fft_f32(%[[CONCATENATE]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {inverse = 0 : i64, kind = 0 : i64, rank = 1 : i64, skip = 0 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x8x2xf32, [@b, 8, 2]>)
// CHECK-SAME: -> (tensor<?x8x2xf32, [@b, 8, 2]>, tensor<?xui8, [@"1088*min(16, floordiv(b + 7, 8))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK: return %{{\w+}} : tensor<?x8x2xf32, [@b, 8, 2]>
func.func @main(%x: tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>>
  return %0 : tensor<?x8xcomplex<f32>>
}

// -----

// One call for several axes; doubles have their own function.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x4x8x2xf64, [@b, 4, 8, 2]>) -> tensor<?x4x8x2xf64, [@b, 4, 8, 2]> {
// CHECK-NOT: stablehlo.fft
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 3
// CHECK-SAME: : (tensor<?x4x8x1xf64, [@b, 4, 8, 1]>, tensor<?x4x8x1xf64, [@b, 4, 8, 1]>)
// CHECK-SAME: -> tensor<?x4x8x2xf64, [@b, 4, 8, 2]>
// CHECK-NEXT: stablehlo.custom_call @fft_f64(%[[CONCATENATE]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f64>], parameters = {inverse = 1 : i64, kind = 0 : i64, rank = 2 : i64, skip = 0 : i64}, results = [complex<f64>, ui8]}>}
// CHECK-SAME: : (tensor<?x4x8x2xf64, [@b, 4, 8, 2]>) -> (tensor<?x4x8x2xf64, [@b, 4, 8, 2]>,
// CHECK-SAME: tensor<?xui8, [@"max(1088*min(16, b), 2112*min(16, floordiv(b + 1, 2)))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK: return %{{\w+}} : tensor<?x4x8x2xf64, [@b, 4, 8, 2]>
func.func @main(%x: tensor<?x4x8xcomplex<f64>, [@b, 4, 8]>) -> tensor<?x4x8xcomplex<f64>> {
  %0 = stablehlo.fft %x, type = IFFT, length = [4, 8]
      : (tensor<?x4x8xcomplex<f64>, [@b, 4, 8]>) -> tensor<?x4x8xcomplex<f64>>
  return %0 : tensor<?x4x8xcomplex<f64>>
}

// -----

// From reals: the last axis first, then the others.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x4x8xf32, [@b, 4, 8]>) -> tensor<?x4x5x2xf32, [@b, 4, 5, 2]> {
// CHECK-NEXT: stablehlo.custom_call @fft_f32(%[[A]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], parameters = {inverse = 0 : i64, kind = 1 : i64, rank = 1 : i64, skip = 0 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x4x8xf32, [@b, 4, 8]>) -> (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>,
// CHECK-SAME: tensor<?xui8, [@"1088*min(16, floordiv(b + 1, 2))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK: stablehlo.custom_call @fft_f32(%{{\w+}}) {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {inverse = 0 : i64, kind = 0 : i64, rank = 1 : i64, skip = 1 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>)
// CHECK-SAME: -> (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>, tensor<?xui8, [@"576*min(16, floordiv(5*b + 7, 8))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK: return %{{\w+}} : tensor<?x4x5x2xf32, [@b, 4, 5, 2]>
func.func @main(%x: tensor<?x4x8xf32, [@b, 4, 8]>) -> tensor<?x4x5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [4, 8] : (tensor<?x4x8xf32, [@b, 4, 8]>) -> tensor<?x4x5xcomplex<f32>>
  return %0 : tensor<?x4x5xcomplex<f32>>
}

// -----

// From reals along a single axis there is one call.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x8xf32, [@b, 8]>) -> tensor<?x5x2xf32, [@b, 5, 2]> {
// CHECK-NEXT: stablehlo.custom_call @fft_f32(%[[A]]) {api_version = 4 : i32, disc.library = #disc.library<{operands = [f32], parameters = {inverse = 0 : i64, kind = 1 : i64, rank = 1 : i64, skip = 0 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x8xf32, [@b, 8]>) -> (tensor<?x5x2xf32, [@b, 5, 2]>,
// CHECK-SAME: tensor<?xui8, [@"1088*min(16, floordiv(b + 7, 8))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK-NOT: stablehlo.custom_call
// CHECK: return %{{\w+}} : tensor<?x5x2xf32, [@b, 5, 2]>
func.func @main(%x: tensor<?x8xf32, [@b, 8]>) -> tensor<?x5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<?x8xf32, [@b, 8]>) -> tensor<?x5xcomplex<f32>>
  return %0 : tensor<?x5xcomplex<f32>>
}

// -----

// To reals: the last axis comes last.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x4x5x2xf32, [@b, 4, 5, 2]>) -> tensor<?x4x8xf32, [@b, 4, 8]> {
// CHECK-NOT: stablehlo.fft
// CHECK: stablehlo.custom_call @fft_f32(%{{\w+}}) {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {inverse = 1 : i64, kind = 0 : i64, rank = 1 : i64, skip = 1 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>)
// CHECK-SAME: -> (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>, tensor<?xui8, [@"576*min(16, floordiv(5*b + 7, 8))"]>)
// CHECK-NOT: stablehlo.fft
// CHECK: %[[CALL:\w+]]:2 = stablehlo.custom_call @fft_f32(%{{\w+}})
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {inverse = 1 : i64, kind = 2 : i64, rank = 1 : i64, skip = 0 : i64}, results = [f32, ui8]}>} : (tensor<?x4x5x2xf32, [@b, 4, 5, 2]>)
// CHECK-SAME: -> (tensor<?x4x8xf32, [@b, 4, 8]>, tensor<?xui8, [@"1088*min(16, floordiv(b + 1, 2))"]>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?x4x8xf32, [@b, 4, 8]>
func.func @main(%x: tensor<?x4x5xcomplex<f32>, [@b, 4, 5]>) -> tensor<?x4x8xf32> {
  %0 = stablehlo.fft %x, type = IRFFT, length = [4, 8] : (tensor<?x4x5xcomplex<f32>, [@b, 4, 5]>) -> tensor<?x4x8xf32>
  return %0 : tensor<?x4x8xf32>
}

// -----

// The custom call for lengths that are symbols becomes the same call, with a workspace for any length.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x?x2xf32, [@b, @n, 2]>) -> tensor<?x?x2xf32, [@b, @n, 2]> {
// CHECK-NOT: shlo_disc.fft
// CHECK: stablehlo.custom_call @fft_f32(%{{\w+}}) {api_version = 4 : i32, disc.library = #disc.library<{operands = [complex<f32>], parameters = {inverse = 1 : i64, kind = 0 : i64, rank = 1 : i64, skip = 0 : i64}, results = [complex<f32>, ui8]}>} : (tensor<?x?x2xf32, [@b, @n, 2]>)
// CHECK-SAME: -> (tensor<?x?x2xf32, [@b, @n, 2]>, tensor<?xui8, [@"64*min(16, b)*floordiv(9*max(n, min(65536,
// CHECK-SAME: 8*n)) + 7, 8) + 64*min(16, b)"]>)
// CHECK-NOT: shlo_disc.fft
// CHECK: return %{{\w+}} : tensor<?x?x2xf32, [@b, @n, 2]>
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.concatenate %b1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>,
      mhlo.backend_config = {kind = 1 : i64, rank = 1 : i64}}
          : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi32>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// It has to say along how many axes it runs.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @shlo_disc.fft at line {{[0-9]+}}: a transform needs the integers kind and rank
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.concatenate %b1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>,
      mhlo.backend_config = {kind = 1 : i64}}
          : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi32>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// A call of another name is no transform.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @example.fft at line {{[0-9]+}}: this custom call has no lowering; register a native function for it with shlo_disc.register_custom_call
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.concatenate %b1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.custom_call @example.fft(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>,
      mhlo.backend_config = {kind = 1 : i64, rank = 1 : i64}}
          : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi32>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// The length has to be the size of the axis.
// CHECK-LABEL: error: stablehlo.fft at line {{[0-9]+}}: the sizes 8 and 9 must be equal and never are
func.func @main(%x: tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [9] : (tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>>
  return %0 : tensor<?x8xcomplex<f32>>
}
