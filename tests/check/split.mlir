// Checks of the `check` dialect, several functions in a file.

func.func @exact() {
  %x = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>
  %y = stablehlo.constant dense<10> : tensor<2x2xi32>
  %sum = stablehlo.add %x, %y : tensor<2x2xi32>
  check.expect_eq_const %sum, dense<[[11, 8],
                                     [13, 14]]> : tensor<2x2xi32>
  %swapped = stablehlo.add %y, %x : tensor<2x2xi32>
  check.expect_eq %sum, %swapped : tensor<2x2xi32>
  func.return
}

// -----

func.func @near() {
  %x = stablehlo.constant dense<[1.0, 4.0, 0x7FC00000]> : tensor<3xf32>
  %root = stablehlo.sqrt %x : tensor<3xf32>
  check.expect_almost_eq_const %root, dense<[1.0001, 2.0, 0x7FC00000]> : tensor<3xf32>, tolerance = 0.001
  %want = stablehlo.constant dense<[1.0, 2.0, 0x7FC00000]> : tensor<3xf32>
  check.expect_almost_eq %root, %want : tensor<3xf32>
  check.expect_close %root, %want, max_ulp_difference = 1 : tensor<3xf32>, tensor<3xf32>
  func.return
}

// -----

func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.add %x, %x : tensor<2xf32>
  func.return %y : tensor<2xf32>
}

func.func @calls() {
  %x = stablehlo.constant dense<[0.5, -0.0]> : tensor<2xf32>
  %y = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %y, dense<[1.0, 0.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @sizes_stay_constant() {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi8>
  %shape = stablehlo.constant dense<2> : tensor<2xi64>
  %y = stablehlo.dynamic_reshape %x, %shape : (tensor<4xi8>, tensor<2xi64>) -> tensor<2x2xi8>
  check.expect_eq_const %y, dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  func.return
}

// -----

func.func @generic_form() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = stablehlo.add %x, %x : tensor<2xf32>
  "check.expect_eq_const"(%y) <{value = dense<[2.0, 4.0]> : tensor<2xf32>}> : (tensor<2xf32>) -> ()
  "check.expect_almost_eq_const"(%y) <{tolerance = 0.2 : f64, value = dense<[2.1, 4.0]> : tensor<2xf32>}> : (tensor<2xf32>) -> ()
  %want = stablehlo.constant dense<[2.0, 4.0]> : tensor<2xf32>
  "check.expect_close"(%y, %want) <{max_ulp_difference = 0 : ui64}> : (tensor<2xf32>, tensor<2xf32>) -> ()
  func.return
}
