// RUN: opt --pass-pipeline='annotate,materialize-shapes,expand-bodies' --split-input-file %s | filecheck %s

// The ops of a map's body are done on whole tensors; its constant is broadcast to their size.
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %b, %two : tensor<f32>
    %2 = stablehlo.subtract %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[TWOS:.*]] = stablehlo.dynamic_broadcast_in_dim %[[TWO]]
// CHECK-NEXT: %[[P:.*]] = stablehlo.multiply %arg1, %[[TWOS]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[R:.*]] = stablehlo.subtract %arg0, %[[P]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[R]]

// -----

// A windowed reduction by a called function has that function's body, and a window of sizes as attribute.
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@k]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %k = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32, [@k]>) -> tensor<i32>
  %w = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %p = stablehlo.constant dense<1> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %o, %o, %o, %p) {called_computations = [@larger]}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: custom_call
// CHECK: "stablehlo.reduce_window"(%arg0, %{{.*}}) <{
// CHECK: %[[M:.*]] = stablehlo.maximum
// CHECK-NEXT: stablehlo.return %[[M]]
// CHECK-NEXT: }) {disc.window = #disc.window<{{.*}}size = [@k]

// -----

// The body of a reduction is its own, and a call without a window has no body: both stay.
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<f32>, tensor<3xf32>, tensor<3xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.abs %b : tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<f32>
  %count = stablehlo.constant dense<3> : tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %count) : (tensor<?xf32, [@n]>, tensor<1xi64>) -> (tensor<3xf32>, tensor<3xi32>)
  return %s, %0#0, %0#1 : tensor<f32>, tensor<3xf32>, tensor<3xi32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce(%arg0 init: %{{.*}}) across dimensions = [0]
// CHECK-NEXT: reducer(
// CHECK-NEXT: stablehlo.abs
// CHECK-NEXT: stablehlo.add {{.*}} : tensor<f32>
// CHECK: stablehlo.custom_call @stablehlo.dynamic_top_k(%arg0, %
