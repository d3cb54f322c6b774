// RUN: opt --pass-pipeline='annotate,remove-quantized-types' --split-input-file %s | filecheck %s

// Dequantized: the zero point is taken off wide integers, and the floats of these are multiplied with the scale.
func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @main(%arg0: tensor<4xi8>) -> tensor<4xf32> {
// CHECK-NEXT: %[[SCALE:.*]] = stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NEXT: %[[SCALES:.*]] = stablehlo.broadcast_in_dim %[[SCALE]]
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[ZEROS:.*]] = stablehlo.broadcast_in_dim %[[ZERO]]
// CHECK-NEXT: %[[WIDE:.*]] = stablehlo.convert %arg0 : (tensor<4xi8>) -> tensor<4xi32>
// CHECK-NEXT: %[[MOVED:.*]] = stablehlo.subtract %[[WIDE]], %[[ZEROS]]
// CHECK-NEXT: %[[FLOATS:.*]] = stablehlo.convert %[[MOVED]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = stablehlo.multiply %[[FLOATS]], %[[SCALES]]
// CHECK-NEXT: return %[[R]]

// -----

// A sum is one of floats, and is quantized again: divided by the scale, clamped, rounded and narrowed.
func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.5>> {
  %0 = stablehlo.add %x, %x : tensor<4x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 0.5>>
}
// CHECK-LABEL: func.func @main(%arg0: tensor<4xi8>) -> tensor<4xi8> {
// CHECK-NOT: quant
// CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK: stablehlo.divide
// CHECK: stablehlo.clamp
// CHECK-NEXT: stablehlo.round_nearest_even
// CHECK-NEXT: %[[R:.*]] = stablehlo.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xi8>
// CHECK-NEXT: return %[[R]]

// -----

// A transpose changes no element: it moves the integers, and no float is computed.
func.func @main(%x: tensor<?x4x!quant.uniform<i8:f32, 0.5:1>, [@b, 4]>) -> tensor<4x?x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x4x!quant.uniform<i8:f32, 0.5:1>, [@b, 4]>) -> tensor<4x?x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<4x?x!quant.uniform<i8:f32, 0.5:1>>
}
// CHECK-LABEL: func.func @main(%arg0: tensor<?x4xi8, [@b, 4]>) -> tensor<4x?xi8, [4, @b]> {
// CHECK-NEXT: %[[R:.*]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<?x4xi8, [@b, 4]>) -> tensor<4x?xi8, [4, @b]>
// CHECK-NEXT: return %[[R]]

// -----

// Integers that stand for nothing else are added as they are.
func.func @main(%x: tensor<?xi8, [@n]>, %y: tensor<?xi8, [@n]>) -> tensor<?xi8> {
  %0 = stablehlo.add %x, %y : (tensor<?xi8, [@n]>, tensor<?xi8, [@n]>) -> tensor<?xi8>
  return %0 : tensor<?xi8>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = stablehlo.add %arg0, %arg1 : tensor<?xi8, [@n]>
// CHECK-NEXT: return %[[R]]

// -----

// A transpose of elements with a scale for each column moves their integers: the scales go with the axis.
func.func @main(%x: tensor<4x2x!quant.uniform<i32:f32:1, {0.5, 0.25}>>) -> tensor<2x4x!quant.uniform<i32:f32:0, {0.5, 0.25}>> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x2x!quant.uniform<i32:f32:1, {0.5, 0.25}>>) -> tensor<2x4x!quant.uniform<i32:f32:0, {0.5, 0.25}>>
  return %0 : tensor<2x4x!quant.uniform<i32:f32:0, {0.5, 0.25}>>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xi32>) -> tensor<2x4xi32>
// CHECK-NEXT: return
