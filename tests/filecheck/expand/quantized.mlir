// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Quantized: divided by the scale, moved by the zero point, clamped, rounded to even and narrowed.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xi8, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.270000e+02> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
// CHECK-DAG: %[[CONSTANT3:\w+]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[CONSTANT4:\w+]] = stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NOT: quant
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT4]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT3]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[A]], %[[BROADCAST]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[DIVIDE]], %[[BROADCAST2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CLAMP:\w+]] = stablehlo.clamp %[[CONSTANT2]], %[[ADD]], %[[CONSTANT]]
// CHECK-SAME: : (tensor<f32>, tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ROUND_NEAREST_EVEN:\w+]] = stablehlo.round_nearest_even %[[CLAMP]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[ROUND_NEAREST_EVEN]] : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi8, [@n]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?xi8, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.uniform_quantize %x : (tensor<?xf32, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<?x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// Dequantized: the zero point is taken off 32-bit integers, and the scale multiplied with floats.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xi8, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NOT: quant
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<i32>, tensor<1xi64>) -> tensor<?xi32, [@n]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xi8, [@n]>) -> tensor<?xi32, [@n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[CONVERT]], %[[BROADCAST2]] : tensor<?xi32, [@n]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[SUBTRACT]] : (tensor<?xi32, [@n]>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[CONVERT2]], %[[BROADCAST]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[MULTIPLY]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// With a scale for each index of an axis, scales and zero points are rows.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xi8, [@n, 2]>) -> tensor<?x2xf32, [@n, 2]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
// CHECK-NOT: quant
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n, 2]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32, [@n, 2]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<2xi32>, tensor<2xi64>) -> tensor<?x2xi32, [@n, 2]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x2xi8, [@n, 2]>) -> tensor<?x2xi32, [@n, 2]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[CONVERT]], %[[BROADCAST2]] : tensor<?x2xi32, [@n, 2]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[SUBTRACT]] : (tensor<?x2xi32, [@n, 2]>)
// CHECK-SAME: -> tensor<?x2xf32, [@n, 2]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[CONVERT2]], %[[BROADCAST]] : tensor<?x2xf32, [@n, 2]>
// CHECK-NEXT: return %[[MULTIPLY]] : tensor<?x2xf32, [@n, 2]>
func.func @main(%x: tensor<?x2x!quant.uniform<i8:f32:1, {0.5:1, 0.25:2}>, [@n, 2]>) -> tensor<?x2xf32> {
  %0 = stablehlo.uniform_dequantize %x
      : (tensor<?x2x!quant.uniform<i8:f32:1, {0.5:1, 0.25:2}>, [@n, 2]>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// An op computes with floats: its operands are dequantized, each by its own scale, and its result quantized.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xi8, [@n]>, %{{\w+}}: tensor<?xi8, [@n]>) -> tensor<?xi8, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.270000e+02> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
// CHECK-NOT: quant
// CHECK: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: quant
// CHECK: %[[MULTIPLY2:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[MULTIPLY]], %[[MULTIPLY2]] : tensor<?xf32, [@n]>
// CHECK-NOT: quant
// CHECK: %[[DIVIDE:\w+]] = stablehlo.divide %[[ADD]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %[[DIVIDE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CLAMP:\w+]] = stablehlo.clamp %[[CONSTANT2]], %[[ADD2]], %[[CONSTANT]]
// CHECK-SAME: : (tensor<f32>, tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ROUND_NEAREST_EVEN:\w+]] = stablehlo.round_nearest_even %[[CLAMP]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[ROUND_NEAREST_EVEN]] : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi8, [@n]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?xi8, [@n]>
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>,
    %y: tensor<?x!quant.uniform<i8:f32, 0.25>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.add %x, %y : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>,
      tensor<?x!quant.uniform<i8:f32, 0.25>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<?x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// A comparison has no result to quantize.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xi8, [@n]>, %{{\w+}}: tensor<?xi8, [@n]>) -> tensor<?xi1, [@n]> {
// CHECK-NOT: quant
// CHECK: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: quant
// CHECK: %[[MULTIPLY2:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[MULTIPLY]], %[[MULTIPLY2]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: return %[[COMPARE]] : tensor<?xi1, [@n]>
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>,
    %y: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xi1> {
  %0 = stablehlo.compare LT, %x, %y
      : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>, tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xi1>
  return %0 : tensor<?xi1>
}

// -----

// An op that only moves elements moves the integers.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xi8, [@a, @b]>) -> tensor<?x?xi8, [@b, @a]> {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<?x?xi8, [@a, @b]>)
// CHECK-SAME: -> tensor<?x?xi8, [@b, @a]>
// CHECK-NEXT: return %[[TRANSPOSE]] : tensor<?x?xi8, [@b, @a]>
func.func @main(%x: tensor<?x?x!quant.uniform<i8:f32, 0.5:1>, [@a, @b]>)
    -> tensor<?x?x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<?x?x!quant.uniform<i8:f32, 0.5:1>, [@a, @b]>) -> tensor<?x?x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<?x?x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// So does a choice between values of one kind.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xi1, [@n]>, %[[B:\w+]]: tensor<?xi8, [@n]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xi8, [@n]>) -> tensor<?xi8, [@n]> {
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[A]], %[[B]], %[[C]] : tensor<?xi1, [@n]>, tensor<?xi8, [@n]>
// CHECK-NEXT: return %[[SELECT]] : tensor<?xi8, [@n]>
func.func @main(%p: tensor<?xi1, [@n]>, %x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>,
    %y: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.select %p, %x, %y
      : (tensor<?xi1, [@n]>, tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>,
      tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<?x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// A bitcast to the integers is nothing.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xi8, [@n]>) -> tensor<?xi8, [@n]> {
// CHECK-NEXT: return %[[A]] : tensor<?xi8, [@n]>
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xi8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?xi8>
  return %0 : tensor<?xi8>
}

// -----

// From one scale to another by way of floats.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xi8, [@n]>) -> tensor<?xi8, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.270000e+02> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
// CHECK-DAG: stablehlo.constant dense<2.500000e-01> : tensor<f32>
// CHECK-DAG: stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NOT: quant
// CHECK: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: quant
// CHECK: %[[DIVIDE:\w+]] = stablehlo.divide %[[MULTIPLY]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[DIVIDE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CLAMP:\w+]] = stablehlo.clamp %[[CONSTANT2]], %[[ADD]], %[[CONSTANT]]
// CHECK-SAME: : (tensor<f32>, tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ROUND_NEAREST_EVEN:\w+]] = stablehlo.round_nearest_even %[[CLAMP]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[ROUND_NEAREST_EVEN]] : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi8, [@n]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?xi8, [@n]>
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.25>> {
  %0 = stablehlo.uniform_quantize %x
      : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.25>>
  return %0 : tensor<?x!quant.uniform<i8:f32, 0.25>>
}

// -----

// A constant is its integers.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: ) -> tensor<3xi8> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<[1, 3, -5]> : tensor<3xi8>
// CHECK-NOT: quant
// CHECK: return %[[CONSTANT]] : tensor<3xi8>
func.func @main() -> tensor<3x!quant.uniform<i8:f32, 0.5:1>> {
  %0 = stablehlo.constant() {value = dense<[1, 3, -5]> : tensor<3xi8>} : () -> tensor<3x!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<3x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// A body on quantized values is refused.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.reduce on !quant.uniform<i8:f32, 5.000000e-01:1> at line {{[0-9]+}}: this dtype has no lowering; convert to a supported dtype first
func.func @main(%x: tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>) -> tensor<!quant.uniform<i8:f32, 0.5:1>> {
  %i = stablehlo.constant() {value = dense<0> : tensor<i8>} : () -> tensor<!quant.uniform<i8:f32, 0.5:1>>
  %0 = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5:1>>, %b: tensor<!quant.uniform<i8:f32, 0.5:1>>):
    %1 = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 0.5:1>>
    stablehlo.return %1 : tensor<!quant.uniform<i8:f32, 0.5:1>>
  }) : (tensor<?x!quant.uniform<i8:f32, 0.5:1>, [@n]>, tensor<!quant.uniform<i8:f32, 0.5:1>>)
      -> tensor<!quant.uniform<i8:f32, 0.5:1>>
  return %0 : tensor<!quant.uniform<i8:f32, 0.5:1>>
}
