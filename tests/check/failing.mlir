// Every way to fail, and what is skipped.

func.func @wrong_expectation() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.multiply %x, %x : tensor<2xi32>
  check.expect_eq_const %y, dense<[1, 5]> : tensor<2xi32>
  func.return
}

// -----

func.func @too_far() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf16>
  %y = stablehlo.add %x, %x : tensor<2xf16>
  %want = stablehlo.constant dense<[2.0, 4.02]> : tensor<2xf16>
  check.expect_close %y, %want, max_ulp_difference = 4, min_ulp_difference = 0 : tensor<2xf16>, tensor<2xf16>
  func.return
}

// -----

func.func @no_lowering() {
  %x = stablehlo.constant dense<1.0> : tensor<2xf32>
  %y = stablehlo.custom_call @nobody_knows(%x) : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %y, dense<1.0> : tensor<2xf32>
  func.return
}

// -----

func.func @no_program() {
  %x = stablehlo.constant dense<1.0> : tensor<2xf32>
  %y = stablehlo.add %x, %nothing : tensor<2xf32>
  check.expect_eq_const %y, dense<1.0> : tensor<2xf32>
  func.return
}

// -----

func.func @participants() {
  %x = stablehlo.constant dense<1> : tensor<i64>
  %y:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@a], [@a]]} : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
  check.expect_eq_const %y#0, dense<1> : tensor<i64>
  func.return
}
