// RUN: opt --pass-pipeline='annotate,expand-ops,unify-sizes' --split-input-file %s | filecheck %s

// Holes between h + 1 rows make 2*h + 1 of them, as the result has it. A rewrite has h + 1 + max(0, h).
func.func @main(%x: tensor<1x2x?xf32, [1, 2, @"h + 1"]>, %k: tensor<3x2x1xf32>) -> tensor<1x3x?xf32> {
  %0 = "stablehlo.convolution"(%x, %k) {
    window_strides = array<i64: 1>, padding = dense<0> : tensor<1x2xi64>, lhs_dilation = array<i64: 2>,
    rhs_dilation = array<i64: 1>, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
    feature_group_count = 1 : i64, batch_group_count = 1 : i64
  } : (tensor<1x2x?xf32, [1, 2, @"h + 1"]>, tensor<3x2x1xf32>) -> tensor<1x3x?xf32>
  return %0 : tensor<1x3x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: max(
// CHECK: stablehlo.pad {{.*}} -> tensor<1x?x2xf32, [1, @"2*h + 1", 2]>
// CHECK-NOT: max(
// CHECK: return
