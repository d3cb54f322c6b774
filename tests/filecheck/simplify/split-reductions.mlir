// RUN: opt --pass-pipeline='annotate,split-reductions' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// A sum over everything: what is summed is a view of one axis, filled up to whole parts.
func.func @main(%x: tensor<?x?xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %square = stablehlo.multiply %x, %x : tensor<?x?xf32>
  %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.multiply %{{.*}}, %{{.*}} : tensor<?xf32,
// CHECK: stablehlo.dynamic_pad
// CHECK: stablehlo.dynamic_reshape {{.*}} -> tensor<?x4096xf32,
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.add across dimensions = [0] : {{.*}} -> tensor<4096xf32>
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>

// -----
// Few columns: parts one behind the other, so that columns stay neighbours. Halves are summed in f32.
func.func @main(%x: tensor<?x64xbf16>) -> tensor<64xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?x64xbf16>, tensor<bf16>) -> tensor<64xbf16>
  return %sum : tensor<64xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.convert {{.*}} -> tensor<?x64xf32,
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<64x?x64xf32,{{.*}} -> tensor<64x64xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : {{.*}} -> tensor<64xf32>
// CHECK: stablehlo.convert {{.*}} -> tensor<64xbf16>

// -----
// Axes that are not neighbours: those behind first.
func.func @main(%x: tensor<?x16x?x?xf32>) -> tensor<16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %most = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0, 2, 3] : (tensor<?x16x?x?xf32>, tensor<f32>) -> tensor<16xf32>
  return %most : tensor<16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce({{.*}} across dimensions = [2, 3] : {{.*}} -> tensor<?x16xf32,
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : {{.*}} -> tensor<16xf32>
