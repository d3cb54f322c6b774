// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A transform of complex numbers keeps the shape, and its length is the size of the last axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>, [@b, 8]>
// CHECK: stablehlo.fft %{{.*}}, type = FFT, length = [8] : (tensor<?x8xcomplex<f32>, [@b, 8]>) -> tensor<?x8xcomplex<f32>, [@b, 8]>
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// The inverse keeps the shape too, and has one length for each of its axes.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x4x6xcomplex<f32>, [@b, 4, 6]>) -> tensor<?x4x6xcomplex<f32>, [@b, 4, 6]>
func.func @main(%x: tensor<?x?x?xcomplex<f32>, [@b, @n, @m]>) -> tensor<?x?x?xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = IFFT, length = [4, 6] : (tensor<?x?x?xcomplex<f32>, [@b, @n, @m]>) -> tensor<?x?x?xcomplex<f32>>
  return %0 : tensor<?x?x?xcomplex<f32>>
}

// -----

// Of real numbers there are half as many results and one along the last axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x4x9xf32, [@b, 4, 9]>) -> tensor<?x4x5xcomplex<f32>, [@b, 4, 5]>
// CHECK: stablehlo.fft {{.*}} -> tensor<?x4x5xcomplex<f32>, [@b, 4, 5]>
func.func @main(%x: tensor<?x?x9xf32, [@b, @n, 9]>) -> tensor<?x?x5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [4, 9] : (tensor<?x?x9xf32, [@b, @n, 9]>) -> tensor<?x?x5xcomplex<f32>>
  return %0 : tensor<?x?x5xcomplex<f32>>
}

// -----

// Back to real numbers: the result has the stated length, and the operand half of it and one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x4x5xcomplex<f32>, [@b, 4, 5]>) -> tensor<?x4x9xf32, [@b, 4, 9]>
// CHECK: stablehlo.fft {{.*}} -> tensor<?x4x9xf32, [@b, 4, 9]>
func.func @main(%x: tensor<?x?x5xcomplex<f32>, [@b, @n, 5]>) -> tensor<?x?x9xf32> {
  %0 = stablehlo.fft %x, type = IRFFT, length = [4, 9] : (tensor<?x?x5xcomplex<f32>, [@b, @n, 5]>) -> tensor<?x?x9xf32>
  return %0 : tensor<?x?x9xf32>
}

// -----

// A length that the size never is.
// CHECK: error: stablehlo.fft at line {{[0-9]+}}: the sizes 2*n + 1 and 8 must be equal and never are
func.func @main(%x: tensor<?xcomplex<f32>, [@"2*n + 1"]>) -> tensor<?xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<?xcomplex<f32>, [@"2*n + 1"]>) -> tensor<?xcomplex<f32>>
  return %0 : tensor<?xcomplex<f32>>
}

// -----

// A transform along an axis of any size keeps it. (kind 0: FFT)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.custom_call @shlo_disc.fft({{.*}} -> tensor<?x?xcomplex<f32>, [@b, @n]>
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %shape = "disc.shape"() {dims = [@b, @n]} : () -> tensor<2xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 0 : i64, rank = 1 : i64}}
    : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi64>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// The sizes that an inverse transform is given along its axes are those of its operand. (kind 1: IFFT)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: func.func @main(%{{.*}}: tensor<?x?xcomplex<f32>, [@b, @m]>, %{{.*}}: tensor<?xf32, [@m]>) -> tensor<?x?xcomplex<f32>, [@b, @m]>
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>, %y: tensor<?xf32, [@m]>) -> tensor<?x?xcomplex<f32>> {
  %shape = "disc.shape"() {dims = [@b, @m]} : () -> tensor<2xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 1 : i64, rank = 1 : i64}}
    : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi64>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// Of real numbers there are half as many and one along the last axis, whatever its size. (kind 2: RFFT)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @shlo_disc.fft({{.*}} -> tensor<?x?xcomplex<f32>, [@b, @"floordiv(n, 2) + 1"]>
func.func @main(%x: tensor<?x?xf32, [@b, @n]>) -> tensor<?x?xcomplex<f32>> {
  %shape = "disc.shape"() {dims = [@b, @"floordiv(n, 2) + 1"]} : () -> tensor<2xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 2 : i64, rank = 1 : i64}}
    : (tensor<?x?xf32, [@b, @n]>, tensor<2xi64>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// Back to as many real numbers as are asked for, from half of them and one. (kind 3: IRFFT)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: func.func @main(%{{.*}}: tensor<?x?xcomplex<f32>, [@b, @"floordiv(m, 2) + 1"]>, %{{.*}}: tensor<?xf32, [@m]>)
// CHECK: stablehlo.custom_call @shlo_disc.fft({{.*}} -> tensor<?x?xf32, [@b, @m]>
func.func @main(%x: tensor<?x?xcomplex<f32>, [@b, @n]>, %y: tensor<?xf32, [@m]>) -> tensor<?x?xf32> {
  %shape = "disc.shape"() {dims = [@b, @m]} : () -> tensor<2xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 3 : i64, rank = 1 : i64}}
    : (tensor<?x?xcomplex<f32>, [@b, @n]>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Sizes of the result along an axis of the transform that never are those of the operand.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>> {
  %shape = "disc.shape"() {dims = [@"n + 1"]} : () -> tensor<1xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 0 : i64, rank = 1 : i64}}
    : (tensor<?xcomplex<f32>, [@n]>, tensor<1xi64>) -> tensor<?xcomplex<f32>>
  return %0 : tensor<?xcomplex<f32>>
}

// -----

// A transform with a number of axes that it cannot run along is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK: @shlo_disc.fft {{.*}}: a transform runs along one to three axes
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>> {
  %shape = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
  %0 = stablehlo.custom_call @shlo_disc.fft(%x, %shape) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
    mhlo.backend_config = {kind = 0 : i64, rank = 2 : i64}}
    : (tensor<?xcomplex<f32>, [@n]>, tensor<1xi64>) -> tensor<?xcomplex<f32>>
  return %0 : tensor<?xcomplex<f32>>
}
