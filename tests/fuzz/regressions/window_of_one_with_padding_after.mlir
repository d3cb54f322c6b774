// A window of one element read beyond the operand where there was padding after it and none before.
// seed: 37
// argument: -2 2 0
// errors: 0.0
// call: 1x1x5
// call: 3x2x5
func.func public @main(%x0: tensor<?x?x5xf32>) -> (tensor<?x?x4xf32>) {
  %t1 = "stablehlo.constant"() <{value = dense<0.000000> : tensor<f32>}> : () -> (tensor<f32>)
  %t2 = "stablehlo.reduce_window"(%x0, %t1) <{window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 2, 1, 1>, padding = dense<[[0, 1], [0, 0], [0, 4]]> : tensor<3x2xi64>}> ({^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%c) : (tensor<f32>) -> ()}) : (tensor<?x?x5xf32>, tensor<f32>) -> (tensor<?x?x4xf32>)
  return %t2 : tensor<?x?x4xf32>
}
