// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Other layouts become the canonical one by transposes, of the result too.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x3x?x?xf32, [@b, 3, @h, @w]>,
// CHECK-SAME: %[[B:\w+]]: tensor<8x3x2x2xf32>) -> tensor<?x8x?x?xf32, [@b, 8, @"max(0, h - 1)", @"max(0, w - 1)"]> {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [0, 2, 3, 1]
// CHECK-SAME: : (tensor<?x3x?x?xf32, [@b, 3, @h, @w]>) -> tensor<?x?x?x3xf32, [@b, @h, @w, 3]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[B]], dims = [2, 3, 1, 0] : (tensor<8x3x2x2xf32>)
// CHECK-SAME: -> tensor<2x2x3x8xf32>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[TRANSPOSE]],
// CHECK-SAME: %[[TRANSPOSE2]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1],
// CHECK-SAME: pad = [[0, 0], [0, 0]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x?x3xf32, [@b, @h, @w, 3]>, tensor<2x2x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x?x8xf32, [@b, @"max(0, h - 1)", @"max(0, w - 1)", 8]>
// CHECK-NEXT: %[[TRANSPOSE3:\w+]] = stablehlo.transpose %[[CONVOLUTION]], dims = [0, 3, 1, 2]
// CHECK-SAME: : (tensor<?x?x?x8xf32, [@b, @"max(0, h - 1)", @"max(0, w - 1)", 8]>)
// CHECK-SAME: -> tensor<?x8x?x?xf32, [@b, 8, @"max(0, h - 1)", @"max(0, w - 1)"]>
// CHECK-NEXT: return %[[TRANSPOSE3]] : tensor<?x8x?x?xf32, [@b, 8, @"max(0, h - 1)", @"max(0, w - 1)"]>
func.func @main(%x: tensor<?x3x?x?xf32, [@b, 3, @h, @w]>, %w: tensor<8x3x2x2xf32>) -> tensor<?x8x?x?xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x3x?x?xf32, [@b, 3, @h, @w]>, tensor<8x3x2x2xf32>) -> tensor<?x8x?x?xf32>
  return %0 : tensor<?x8x?x?xf32>
}

// -----

// Padding becomes an op of its own once the layout is canonical.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x3x?xf32, [@b, 3, @h]>,
// CHECK-SAME: %[[B:\w+]]: tensor<8x3x2xf32>) -> tensor<?x8x?xf32, [@b, 8, @h]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.convolution
// CHECK: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [0, 2, 1] : (tensor<?x3x?xf32, [@b, 3, @h]>)
// CHECK-SAME: -> tensor<?x?x3xf32, [@b, @h, 3]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[B]], dims = [2, 1, 0] : (tensor<8x3x2xf32>)
// CHECK-SAME: -> tensor<2x3x8xf32>
// CHECK-NEXT: %[[PAD:\w+]] = stablehlo.pad %[[TRANSPOSE]],
// CHECK-SAME: %[[CONSTANT]], low = [0, 0, 0], high = [0, 1, 0], interior = [0, 0, 0]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<f32>) -> tensor<?x?x3xf32, [@b, @"h + 1", 3]>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[PAD]],
// CHECK-SAME: %[[TRANSPOSE2]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1],
// CHECK-SAME: rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @"h + 1", 3]>, tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@b, @h, 8]>
// CHECK-NEXT: %[[TRANSPOSE3:\w+]] = stablehlo.transpose %[[CONVOLUTION]], dims = [0, 2, 1]
// CHECK-SAME: : (tensor<?x?x8xf32, [@b, @h, 8]>) -> tensor<?x8x?xf32, [@b, 8, @h]>
// CHECK-NEXT: return %[[TRANSPOSE3]] : tensor<?x8x?xf32, [@b, 8, @h]>
func.func @main(%x: tensor<?x3x?xf32, [@b, 3, @h]>, %w: tensor<8x3x2xf32>) -> tensor<?x8x?xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
      padding = dense<[[0, 1]]> : tensor<1x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x3x?xf32, [@b, 3, @h]>, tensor<8x3x2xf32>) -> tensor<?x8x?xf32>
  return %0 : tensor<?x8x?xf32>
}

// -----

// Holes in the input are padding between its elements, and a reversed window is the reverse of the kernel.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@b, @"max(0, max(0, 2*h - 1) - 1)", 8]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.convolution
// CHECK: %[[PAD:\w+]] = stablehlo.pad %[[A]], %[[CONSTANT]], low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1,
// CHECK-SAME: 0] : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<f32>) -> tensor<?x?x3xf32, [@b, @"max(0, h - 1) + h", 3]>
// CHECK-NEXT: %[[REVERSE:\w+]] = stablehlo.reverse %[[B]], dims = [0] : tensor<2x3x8xf32>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[PAD]],
// CHECK-SAME: %[[REVERSE]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1],
// CHECK-SAME: rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @"max(0, h - 1) + h", 3]>, tensor<2x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@b, @"max(0, max(0, 2*h - 1) - 1)", 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@b, @"max(0, max(0, 2*h - 1) - 1)", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<2x3x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      lhs_dilation = array<i64: 2>, window_reversal = array<i1: true>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Groups of batches, whose number is a size, are as many groups of features.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 2, 0, 3] : (tensor<?x3x?x2xf32, [@g, 3, @h, 2]>)
// CHECK: stablehlo.convolution{{.*}}batch_group_count = 1 : i64, disc.groups = [@g, 1], feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<3x?x?xf32, [3, @h, @"2*g"]>, tensor<1x2x?xf32, [1, 2, @"4*g"]>)
func.func @main(%x: tensor<?x?x2xf32, [@"3*g", @h, 2]>, %w: tensor<1x2x?xf32, [1, 2, @"4*g"]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}> {disc.groups = [1, @g]}
      : (tensor<?x?x2xf32, [@"3*g", @h, 2]>, tensor<1x2x?xf32, [1, 2, @"4*g"]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Groups of batches are groups of features.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@"floordiv(b, 2)", @"max(0, h - 1)", 8]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [2, @"floordiv(b, 2)", @h, 3]} : () -> tensor<4xi64>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[A]], %[[SHAPE]]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<4xi64>) -> tensor<2x?x?x3xf32, [2, @"floordiv(b, 2)", @h, 3]>
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[RESHAPE]], dims = [1, 2, 0, 3]
// CHECK-SAME: : (tensor<2x?x?x3xf32, [2, @"floordiv(b, 2)", @h, 3]>)
// CHECK-SAME: -> tensor<?x?x2x3xf32, [@"floordiv(b, 2)", @h, 2, 3]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@"floordiv(b, 2)", @h, 6]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.dynamic_reshape %[[TRANSPOSE]], %[[SHAPE2]]
// CHECK-SAME: : (tensor<?x?x2x3xf32, [@"floordiv(b, 2)", @h, 2, 3]>, tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x6xf32, [@"floordiv(b, 2)", @h, 6]>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[RESHAPE2]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1],
// CHECK-SAME: rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
// CHECK-SAME: : (tensor<?x?x6xf32, [@"floordiv(b, 2)", @h, 6]>, tensor<2x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@"floordiv(b, 2)", @"max(0, h - 1)", 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@"floordiv(b, 2)", @"max(0, h - 1)", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<2x3x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 2 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Padding that is an operand is one of the op before the convolution.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@b, @"h + 2", 8]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: dynamic_conv
// CHECK: %[[PAD:\w+]] = stablehlo.pad %[[A]], %[[CONSTANT]], low = [0, 1, 0], high = [0, 2, 0], interior = [0, 0,
// CHECK-SAME: 0] : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<f32>) -> tensor<?x?x3xf32, [@b, @"h + 3", 3]>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[PAD]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1],
// CHECK-SAME: rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @"h + 3", 3]>, tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@b, @"h + 2", 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@b, @"h + 2", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<2x3x8xf32>) -> tensor<?x?x8xf32> {
  %p = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>, tensor<1x2xi64>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Padding that is only known from data is a padding by symbols.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>, %[[B:\w+]]: tensor<2x3x8xf32>,
// CHECK-SAME: %[[C:\w+]]: tensor<1x2xi32>) -> tensor<?x?x8xf32, [@b, @"max(0, n1 + n0 + h - 1)", 8]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: dynamic_conv
// CHECK: "disc.bind"(%[[C]]) {symbols = [@n0, @n1]} : (tensor<1x2xi32>) -> ()
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [0, @n0, 0]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [0, @n1, 0]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [0, 0, 0]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[PAD:\w+]] = stablehlo.dynamic_pad %[[A]], %[[CONSTANT]], %[[SHAPE]], %[[SHAPE2]], %[[SHAPE3]]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<f32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x3xf32, [@b, @"n1 + n0 + h", 3]>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[PAD]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1],
// CHECK-SAME: rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @"n1 + n0 + h", 3]>, tensor<2x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@b, @"max(0, n1 + n0 + h - 1)", 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@b, @"max(0, n1 + n0 + h - 1)", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<2x3x8xf32>, %p: tensor<1x2xi32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>, tensor<1x2xi32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// A window of one element is a product over the features.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<1x3x8xf32>) -> tensor<?x?x8xf32, [@b, @h, 8]> {
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.reshape %[[B]] : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[RESHAPE]], contracting_dims = [2] x [0]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<3x8xf32>) -> tensor<?x?x8xf32, [@b, @h, 8]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?x8xf32, [@b, @h, 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<1x3x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<1x3x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// With steps, it is a product of every other element.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<1x3x8xf32>) -> tensor<?x?x8xf32, [@b, @"floordiv(h + 1, 2)", 8]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [0, 0, 0]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@b, @h, 3]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [1, 2, 1]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %[[SHAPE]], %[[SHAPE2]], %[[SHAPE3]]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x3xf32, [@b, @"floordiv(h + 1, 2)", 3]>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.reshape %[[B]] : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[SLICE]], %[[RESHAPE]], contracting_dims = [2] x [0]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @"floordiv(h + 1, 2)", 3]>, tensor<3x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@b, @"floordiv(h + 1, 2)", 8]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?x8xf32, [@b, @"floordiv(h + 1, 2)", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<1x3x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      window_strides = array<i64: 2>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<1x3x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// A window as large as the input is a product over space as well.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x3x8xf32, [@h, 3, 8]>) -> tensor<?x1x8xf32, [@b, 1, 8]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1, 2] x [0, 1]
// CHECK-SAME: : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<?x3x8xf32, [@h, 3, 8]>) -> tensor<?x8xf32, [@b, 8]>
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, 1, 8]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[DOT]], %[[SHAPE]]
// CHECK-SAME: : (tensor<?x8xf32, [@b, 8]>, tensor<3xi64>) -> tensor<?x1x8xf32, [@b, 1, 8]>
// CHECK-NEXT: return %[[RESHAPE]] : tensor<?x1x8xf32, [@b, 1, 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<?x3x8xf32, [@h, 3, 8]>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<?x3x8xf32, [@h, 3, 8]>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// A convolution in canonical form stays.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<2x3x8xf32>) -> tensor<?x?x8xf32, [@b, @"max(0, h - 1)", 8]> {
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[A]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@b, @"max(0, h - 1)", 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@b, @"max(0, h - 1)", 8]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @h, 3]>, %w: tensor<2x3x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// A window of one element in groups of features is no product.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x4xf32, [@b, @h, 4]>,
// CHECK-SAME: %[[B:\w+]]: tensor<1x2x8xf32>) -> tensor<?x?x8xf32, [@b, @h, 8]> {
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[A]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 2 : i64} : (tensor<?x?x4xf32, [@b, @h, 4]>, tensor<1x2x8xf32>)
// CHECK-SAME: -> tensor<?x?x8xf32, [@b, @h, 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x8xf32, [@b, @h, 8]>
func.func @main(%x: tensor<?x?x4xf32, [@b, @h, 4]>, %w: tensor<1x2x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 2 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x4xf32, [@b, @h, 4]>, tensor<1x2x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Padding stays where the runtime fills it in as it gathers windows.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?x32xf32, [@b, @h, @w, 32]>,
// CHECK-SAME: %[[B:\w+]]: tensor<3x3x32x32xf32>) -> tensor<?x?x?x32xf32, [@b, @h, @w, 32]> {
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[A]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1,
// CHECK-SAME: 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x?x32xf32, [@b, @h, @w, 32]>, tensor<3x3x32x32xf32>)
// CHECK-SAME: -> tensor<?x?x?x32xf32, [@b, @h, @w, 32]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x?x32xf32, [@b, @h, @w, 32]>
func.func @main(%x: tensor<?x?x?x32xf32, [@b, @h, @w, 32]>, %w: tensor<3x3x32x32xf32>) -> tensor<?x?x?x32xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      padding = dense<1> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x?x32xf32, [@b, @h, @w, 32]>, tensor<3x3x32x32xf32>) -> tensor<?x?x?x32xf32>
  return %0 : tensor<?x?x?x32xf32>
}

// -----

// With fewer features it does not stay.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?x3xf32, [@b, @h, @w, 3]>,
// CHECK-SAME: %[[B:\w+]]: tensor<3x3x3x8xf32>) -> tensor<?x?x?x8xf32, [@b, @h, @w, 8]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.convolution
// CHECK: %[[PAD:\w+]] = stablehlo.pad %[[A]], %[[CONSTANT]], low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0,
// CHECK-SAME: 0, 0, 0] : (tensor<?x?x?x3xf32, [@b, @h, @w, 3]>, tensor<f32>)
// CHECK-SAME: -> tensor<?x?x?x3xf32, [@b, @"h + 2", @"w + 2", 3]>
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[PAD]],
// CHECK-SAME: %[[B]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1],
// CHECK-SAME: rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
// CHECK-SAME: : (tensor<?x?x?x3xf32, [@b, @"h + 2", @"w + 2", 3]>, tensor<3x3x3x8xf32>)
// CHECK-SAME: -> tensor<?x?x?x8xf32, [@b, @h, @w, 8]>
// CHECK-NEXT: return %[[CONVOLUTION]] : tensor<?x?x?x8xf32, [@b, @h, @w, 8]>
func.func @main(%x: tensor<?x?x?x3xf32, [@b, @h, @w, 3]>, %w: tensor<3x3x3x8xf32>) -> tensor<?x?x?x8xf32> {
  %0 = "stablehlo.convolution"(%x, %w)
      <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      padding = dense<1> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
      : (tensor<?x?x?x3xf32, [@b, @h, @w, 3]>, tensor<3x3x3x8xf32>) -> tensor<?x?x?x8xf32>
  return %0 : tensor<?x?x?x8xf32>
}
