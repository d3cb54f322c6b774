module attributes {disc.stage = "simplify"} {
  "disc.signature"() {arguments = [{dims = [@b, @s], dtype = "f32", path = "args[0]"}, {dims = [@s, 16], dtype = "f32", path = "args[1]"}], kept = array<i64: 0, 1>, name = "main", results = [{dims = [@b], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "b"} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "s"} : () -> ()
  func.func @main(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?xf32, [@b]> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    %1 = stablehlo.exponential %0 : tensor<?x16xf32, [@b, 16]>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<?x16xf32, [@b, 16]>, tensor<f32>) -> tensor<?xf32, [@b]>
    return %2 : tensor<?xf32, [@b]>
  }
}
