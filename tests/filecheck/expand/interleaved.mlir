// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// An argument is read as two columns, and a result written as two: its last axis is the parts.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xf32, [@n, 2]>) -> tensor<?x2xf32, [@n, 2]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [0, 0]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@n, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [1, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %[[SHAPE]], %[[SHAPE2]], %[[SHAPE3]]
// CHECK-SAME: : (tensor<?x2xf32, [@n, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xf32, [@n, 1]>
// CHECK-NEXT: %[[SHAPE4:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[SLICE]], %[[SHAPE4]]
// CHECK-SAME: : (tensor<?x1xf32, [@n, 1]>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SHAPE5:\w+]] = "disc.shape"() {dims = [0, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SHAPE6:\w+]] = "disc.shape"() {dims = [@n, 2]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[A]], %[[SHAPE5]], %[[SHAPE6]], %[[SHAPE3]]
// CHECK-SAME: : (tensor<?x2xf32, [@n, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xf32, [@n, 1]>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.dynamic_reshape %[[SLICE2]], %[[SHAPE4]]
// CHECK-SAME: : (tensor<?x1xf32, [@n, 1]>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[RESHAPE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE2:\w+]] = stablehlo.negate %[[RESHAPE2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[RESHAPE3:\w+]] = stablehlo.dynamic_reshape %[[NEGATE]], %[[SHAPE2]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<2xi64>) -> tensor<?x1xf32, [@n, 1]>
// CHECK-NEXT: %[[RESHAPE4:\w+]] = stablehlo.dynamic_reshape %[[NEGATE2]], %[[SHAPE2]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<2xi64>) -> tensor<?x1xf32, [@n, 1]>
// CHECK-NEXT: %[[CONCATENATE:\w+]] = stablehlo.concatenate %[[RESHAPE3]], %[[RESHAPE4]], dim = 1
// CHECK-SAME: : (tensor<?x1xf32, [@n, 1]>, tensor<?x1xf32, [@n, 1]>) -> tensor<?x2xf32, [@n, 2]>
// CHECK-NEXT: return %[[CONCATENATE]] : tensor<?x2xf32, [@n, 2]>
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>> {
  %0 = stablehlo.negate %x : (tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>>
  return %0 : tensor<?xcomplex<f32>>
}

// -----

// Reals stay as they are.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[NEGATE]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.negate %x : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
