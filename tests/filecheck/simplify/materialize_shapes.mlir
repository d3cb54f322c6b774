// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Arithmetic on sizes becomes one list of sizes, and nothing else is left of it.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.multiply %n, %four : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x4xf32, [@b, 4]>, tensor<1xi32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[S:.*]] = "disc.shape"() {dims = [@"4*b"]} : () -> tensor<1xi32>
// CHECK-NEXT: stablehlo.dynamic_reshape %arg0, %[[S]]
// CHECK-NEXT: return

// -----

// A size that is used as a number is a scalar of its own.
func.func @main(%x: tensor<?xf32, [@b]>) -> tensor<f32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.add %n, %one : tensor<i32>
  %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = "disc.shape"() {dims = [@"b + 1"]} : () -> tensor<i32>
// CHECK-NEXT: stablehlo.convert %[[S]]

// -----

// Arithmetic on known numbers is a constant; on numbers from data it stays.
func.func @main(%i: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.multiply %two, %two : tensor<i32>
  %1 = stablehlo.multiply %i, %two : tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}
// CHECK-LABEL: func.func @main
// CHECK-DAG: stablehlo.constant dense<4> : tensor<i32>
// CHECK-DAG: stablehlo.multiply %arg0

// -----

// A comparison of sizes that the facts decide is a constant.
func.func @main(%x: tensor<?xf32, [@b]>) -> tensor<i1> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.compare GE, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK-NEXT: return %[[TRUE]]
