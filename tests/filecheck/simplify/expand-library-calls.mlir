// RUN: opt --pass-pipeline='annotate,expand-library-calls' --split-input-file %s | filecheck %s

// A triangular solve is a call of LAPACK's, whose parameters are letters: on the left, upper, transposed, unit diagonal.
func.func @main(%a: tensor<?x?xf64, [@n, @n]>, %b: tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = false, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = true}>
      : (tensor<?x?xf64, [@n, @n]>, tensor<?x?xf64, [@n, @m]>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]]:2 = stablehlo.custom_call @lapack_dtrsm(%arg0, %arg1)
// CHECK-SAME: parameters = {diag = 85 : i64, side = 76 : i64, trans_x = 84 : i64, uplo = 85 : i64}
// CHECK-SAME: -> (tensor<?x?xf64, [@n, @m]>, tensor<0xui8>)
// CHECK-NEXT: return %[[R]]#0

// -----

// A Fourier transform is a call that has its working memory as second result.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>) -> tensor<?x5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<?x8xf32, [@b, 8]>) -> tensor<?x5xcomplex<f32>>
  return %0 : tensor<?x5xcomplex<f32>>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]]:2 = stablehlo.custom_call @fft_f32(%arg0)
// CHECK-SAME: -> (tensor<?x5xcomplex<f32>, [@b, 5]>, tensor<?xui8, [@"{{.*}}b{{.*}}"]>)
// CHECK-NEXT: return %[[R]]#0

// -----

// A sum over two participants is a call, which knows the participants and, by a number, the reduction.
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]]:2 = stablehlo.custom_call @collective_all_reduce(%arg0)
// CHECK-SAME: groups = [array<i64: 0, 1>], {{.*}}parameters = {reduction = {{[0-9]+}} : i64}
// CHECK-NEXT: return %[[R]]#0

// -----

// A matrix product has kernels, and the largest elements are a call that is expanded later: both stay.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %w: tensor<8x8xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %two = stablehlo.constant dense<2> : tensor<1xi64>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%0, %two) : (tensor<?x8xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %1#0, %1#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK-NEXT: stablehlo.custom_call @stablehlo.dynamic_top_k(%[[P]], %{{.*}}) : (
