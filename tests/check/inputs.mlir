// The other format: inputs and expectation are functions, checks are custom calls.

module @inputs_and_expected {
  func.func public @main() -> tensor<2x3xf32> {
    %0:2 = call @inputs() : () -> (tensor<2x3xf32>, tensor<3xf32>)
    %1 = call @expected() : () -> tensor<2x3xf32>
    %2 = stablehlo.broadcast_in_dim %0#1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %3 = stablehlo.multiply %0#0, %2 : tensor<2x3xf32>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
    return %3 : tensor<2x3xf32>
  }
  func.func private @inputs() -> (tensor<2x3xf32>, tensor<3xf32>) {
    %0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %1 = stablehlo.constant dense<[0.5, 2.0, -1.0]> : tensor<3xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<3xf32>
  }
  func.func private @expected() -> tensor<2x3xf32> {
    %0 = stablehlo.constant dense<[[0.5, 4.0, -3.0], [2.0, 10.0, -6.0]]> : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
