module {
  "disc.symbol"() {min = 0 : i64, sym_name = "b"} : () -> ()
  "disc.symbol"() {min = 0 : i64, sym_name = "s"} : () -> ()
  func.func @main(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?xf32, [@b]> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    %1 = stablehlo.exponential %0 : tensor<?x16xf32, [@b, 16]>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<?x16xf32, [@b, 16]>, tensor<f32>) -> tensor<?xf32, [@b]>
    return %2 : tensor<?xf32, [@b]>
  }
}
