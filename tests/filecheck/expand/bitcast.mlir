// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// To narrower elements: the parts are shifted out along a new last axis.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?x4xui8, [@n, 4]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<8> : tensor<ui32>
// CHECK-NOT: (tensor<?xf32, [@n]>) -> tensor<?x4xui8
// CHECK: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[A]] : (tensor<?xf32, [@n]>) -> tensor<?xui32, [@n]>
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n, 4]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[IOTA:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 1 : (tensor<2xi64>) -> tensor<?x4xui32, [@n, 4]>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<ui32>, tensor<2xi64>) -> tensor<?x4xui32, [@n, 4]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[IOTA]], %[[BROADCAST]] : tensor<?x4xui32, [@n, 4]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[BITCAST_CONVERT]], %[[SHAPE]], dims = [0]
// CHECK-SAME: : (tensor<?xui32, [@n]>, tensor<2xi64>) -> tensor<?x4xui32, [@n, 4]>
// CHECK-NEXT: %[[SHIFT_RIGHT_LOGICAL:\w+]] = stablehlo.shift_right_logical %[[BROADCAST2]], %[[MULTIPLY]]
// CHECK-SAME: : tensor<?x4xui32, [@n, 4]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[SHIFT_RIGHT_LOGICAL]] : (tensor<?x4xui32, [@n, 4]>)
// CHECK-SAME: -> tensor<?x4xui8, [@n, 4]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?x4xui8, [@n, 4]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x4xui8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xf32, [@n]>) -> tensor<?x4xui8>
  return %0 : tensor<?x4xui8>
}

// -----

// To wider elements: the parts of the last axis are shifted together, the first of them the lowest.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xui16, [@n, 2]>) -> tensor<?xf32, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<16> : tensor<ui32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NOT: bitcast_convert
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<ui32>, tensor<1xi64>) -> tensor<?xui32, [@n]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [0, 0]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [@n, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE4:\w+]] = "disc.shape"() {dims = [1, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %[[SHAPE2]], %[[SHAPE3]], %[[SHAPE4]]
// CHECK-SAME: : (tensor<?x2xui16, [@n, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xui16, [@n, 1]>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[SLICE]], %[[SHAPE]]
// CHECK-SAME: : (tensor<?x1xui16, [@n, 1]>, tensor<1xi64>) -> tensor<?xui16, [@n]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[RESHAPE]] : (tensor<?xui16, [@n]>) -> tensor<?xui32, [@n]>
// CHECK-NEXT: %[[SHIFT_LEFT:\w+]] = stablehlo.shift_left %[[CONVERT]], %[[BROADCAST]] : tensor<?xui32, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[BROADCAST]], %[[SHIFT_LEFT]] : tensor<?xui32, [@n]>
// CHECK-NEXT: %[[SHAPE5:\w+]] = "disc.shape"() {dims = [0, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE6:\w+]] = "disc.shape"() {dims = [@n, 2]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[A]], %[[SHAPE5]], %[[SHAPE6]], %[[SHAPE4]]
// CHECK-SAME: : (tensor<?x2xui16, [@n, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xui16, [@n, 1]>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.dynamic_reshape %[[SLICE2]], %[[SHAPE]]
// CHECK-SAME: : (tensor<?x1xui16, [@n, 1]>, tensor<1xi64>) -> tensor<?xui16, [@n]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[RESHAPE2]] : (tensor<?xui16, [@n]>) -> tensor<?xui32, [@n]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<ui32>, tensor<1xi64>) -> tensor<?xui32, [@n]>
// CHECK-NEXT: %[[SHIFT_LEFT2:\w+]] = stablehlo.shift_left %[[CONVERT2]], %[[BROADCAST2]] : tensor<?xui32, [@n]>
// CHECK-NEXT: %[[OR2:\w+]] = stablehlo.or %[[OR]], %[[SHIFT_LEFT2]] : tensor<?xui32, [@n]>
// CHECK-NEXT: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[OR2]] : (tensor<?xui32, [@n]>)
// CHECK-SAME: -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[BITCAST_CONVERT]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?x2xui16, [@n, 2]>) -> tensor<?xf32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x2xui16, [@n, 2]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Booleans are single bits, which a mask cuts off.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xui8, [@n]>) -> tensor<?x8xi1, [@n, 8]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1> : tensor<ui8>
// CHECK-NOT: bitcast_convert
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n, 8]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[IOTA:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 1 : (tensor<2xi64>) -> tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<ui8>, tensor<2xi64>) -> tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[IOTA]], %[[BROADCAST]] : tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[A]], %[[SHAPE]], dims = [0]
// CHECK-SAME: : (tensor<?xui8, [@n]>, tensor<2xi64>) -> tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[SHIFT_RIGHT_LOGICAL:\w+]] = stablehlo.shift_right_logical %[[BROADCAST2]], %[[MULTIPLY]]
// CHECK-SAME: : tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[SHIFT_RIGHT_LOGICAL]], %[[BROADCAST]] : tensor<?x8xui8, [@n, 8]>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[AND]] : (tensor<?x8xui8, [@n, 8]>) -> tensor<?x8xi1, [@n, 8]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?x8xi1, [@n, 8]>
func.func @main(%x: tensor<?xui8, [@n]>) -> tensor<?x8xi1> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xui8, [@n]>) -> tensor<?x8xi1>
  return %0 : tensor<?x8xi1>
}

// -----

// The size of the axis whose parts are joined follows from the widths.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x4xui8, [@n, 4]>) -> tensor<?xui32, [@n]> {
// CHECK-NOT: bitcast_convert
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x4xui8, [@n, 4]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xui8, [@n, 1]>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[SLICE]], %{{\w+}}
// CHECK-SAME: : (tensor<?x1xui8, [@n, 1]>, tensor<1xi64>) -> tensor<?xui8, [@n]>
// CHECK-NEXT: stablehlo.convert %[[RESHAPE]] : (tensor<?xui8, [@n]>) -> tensor<?xui32, [@n]>
// CHECK-NOT: bitcast_convert
// CHECK: %[[OR:\w+]] = stablehlo.or %{{\w+}}, %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NOT: bitcast_convert
// CHECK: %[[OR2:\w+]] = stablehlo.or %[[OR]], %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NOT: bitcast_convert
// CHECK: %[[OR3:\w+]] = stablehlo.or %[[OR2]], %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NOT: bitcast_convert
// CHECK: %[[OR4:\w+]] = stablehlo.or %[[OR3]], %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NEXT: return %[[OR4]] : tensor<?xui32, [@n]>
func.func @main(%x: tensor<?x?xui8, [@n, @k]>) -> tensor<?xui32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x?xui8, [@n, @k]>) -> tensor<?xui32>
  return %0 : tensor<?xui32>
}

// -----

// Elements of one width are left to a single op.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xi32, [@n]> {
// CHECK-NEXT: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[A]] : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi32, [@n]>
// CHECK-NEXT: return %[[BITCAST_CONVERT]] : tensor<?xi32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xi32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xf32, [@n]>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// Widths have to agree with the sizes.
// CHECK-LABEL: error: the program cannot be parsed: line
// CHECK-SAME: requires compatible bit widths. Got: 'tensor<?xf32, [@n]>' and 'tensor<?x3xui8>', but 8 * 3 != 32.
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x3xui8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xf32, [@n]>) -> tensor<?x3xui8>
  return %0 : tensor<?x3xui8>
}
