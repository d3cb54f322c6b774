// RUN: opt --stage simplify --target=cuda:sm_90 --split-input-file %s | filecheck %s

// As many results as there are rows: each is the work of a block by itself.
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: stablehlo.reduce
// CHECK-NOT: stablehlo.reduce

// -----
// Few elements.
func.func @main(%x: tensor<256x256xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: stablehlo.reduce
// CHECK-NOT: stablehlo.reduce

// -----
// A multiple of the parts needs no filling up.
func.func @main(%x: tensor<512x256xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.reshape {{.*}} -> tensor<32x4096xf32>

// -----
// A sum that begins at 1 would begin so in each part.
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: stablehlo.reduce
// CHECK-NOT: stablehlo.reduce
