// Run with --symbolic: sizes become symbols as far as the ops leave them free.

func.func @free() {
  %x = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %sum = stablehlo.add %x, %one : tensor<2x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rows = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  check.expect_eq_const %rows, dense<[9.0, 18.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @fixed() {
  %x = stablehlo.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  %y = stablehlo.reshape %x : (tensor<6xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %y, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  func.return
}
