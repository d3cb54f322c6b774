// RUN: opt --pass-pipeline='annotate,simplify,thin-barriers' --split-input-file %s | filecheck %s

// An op of older versions has become a broadcast: the barrier takes what it reads in its place.
func.func @main(%x: tensor<4xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %b = stablehlo.broadcast %x, sizes = [2] : (tensor<4xf32>) -> tensor<2x4xf32>
  %0:2 = stablehlo.optimization_barrier %b, %y : tensor<2x4xf32>, tensor<2x4xf32>
  %1 = stablehlo.multiply %0#0, %0#1 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<4xf32>, tensor<2x4xf32>
// CHECK-NEXT: %[[B:.*]] = stablehlo.broadcast_in_dim %[[R]]#0, dims = [1]
// CHECK-NEXT: stablehlo.multiply %[[B]], %[[R]]#1

// -----

// One of the two values has become a broadcast of a constant, which goes through: the barrier orders nothing.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.broadcast %c, sizes = [2, 4] : (tensor<f32>) -> tensor<2x4xf32>
  %0:2 = stablehlo.optimization_barrier %x, %b : tensor<2x4xf32>, tensor<2x4xf32>
  %1 = stablehlo.multiply %0#0, %0#1 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant
// CHECK-NEXT: %[[B:.*]] = stablehlo.broadcast_in_dim %[[C]]
// CHECK-NEXT: stablehlo.multiply %arg0, %[[B]]

// -----

// A barrier of two values that are read stays as it is.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.exponential %y : tensor<?xf32, [@s]>
  %1:2 = stablehlo.optimization_barrier %x, %0 : tensor<?xf32, [@s]>, tensor<?xf32, [@s]>
  %2 = stablehlo.tanh %1#0 : tensor<?xf32, [@s]>
  %3 = stablehlo.add %2, %1#1 : tensor<?xf32, [@s]>
  return %3 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[E:.*]] = stablehlo.exponential %arg1
// CHECK-NEXT: %[[R:.*]]:2 = stablehlo.optimization_barrier %arg0, %[[E]] :
// CHECK-NEXT: %[[T:.*]] = stablehlo.tanh %[[R]]#0
// CHECK-NEXT: stablehlo.add %[[T]], %[[R]]#1
