// RUN: opt --pass-pipeline='set-argument-sizes' --split-input-file %s | filecheck %s

// Sizes that the program does not name are named after the argument and the axis; what is computed has no sizes yet.
func.func @main(%x: tensor<?x4xf32>, %y: tensor<2x?xf32>) -> (tensor<?x4xf32>, tensor<2x?xf32>) {
  %0 = stablehlo.tanh %x : tensor<?x4xf32>
  return %0, %y : tensor<?x4xf32>, tensor<2x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<?x4xf32, [@arg0_d0, 4]>, %arg1: tensor<2x?xf32, [2, @arg1_d1]>) -> (tensor<?x4xf32>, tensor<2x?xf32, [2, @arg1_d1]>) {
// CHECK-NEXT: %[[T:.*]] = stablehlo.tanh %arg0 : (tensor<?x4xf32, [@arg0_d0, 4]>) -> tensor<?x4xf32>
// CHECK-NEXT: return %[[T]], %arg1 : tensor<?x4xf32>, tensor<2x?xf32, [2, @arg1_d1]>

// -----

// Two arguments of one op have a name each: that these are equal is not found here.
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<?xf32, [@arg0_d0]>, %arg1: tensor<?xf32, [@arg1_d0]>) -> tensor<?xf32> {
// CHECK-NEXT: stablehlo.add %arg0, %arg1 : (tensor<?xf32, [@arg0_d0]>, tensor<?xf32, [@arg1_d0]>) -> tensor<?xf32>

// -----

// Sizes that the program names stay, expressions among them, and a static type has none.
func.func @main(%x: tensor<?x?xf32, [@b, @"b + 1"]>, %w: tensor<2x4xf32>) -> (tensor<?x?xf32>, tensor<2x4xf32>) {
  %0 = stablehlo.tanh %x : (tensor<?x?xf32, [@b, @"b + 1"]>) -> tensor<?x?xf32>
  return %0, %w : tensor<?x?xf32>, tensor<2x4xf32>
}
// CHECK-NOT: arg0_d
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<?x?xf32, [@b, @"b + 1"]>, %arg1: tensor<2x4xf32>) -> (tensor<?x?xf32>, tensor<2x4xf32>) {
// CHECK-NEXT: stablehlo.tanh %arg0 : (tensor<?x?xf32, [@b, @"b + 1"]>) -> tensor<?x?xf32>
