module attributes {disc.stage = "annotate"} {
  "disc.signature"() {arguments = [{dims = [@arg0_d0, 4], dtype = "f32", path = "args[0]"}, {dims = [@arg0_d0, 4], dtype = "f32", path = "args[1]"}], kept = array<i64: 0, 1>, name = "main", results = [{dims = [@arg0_d0, 4], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x4xf32, [@arg0_d0, 4]>, %arg1: tensor<?x4xf32, [@arg0_d0, 4]>) -> tensor<?x4xf32, [@arg0_d0, 4]> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<?x4xf32, [@arg0_d0, 4]>
    %1 = stablehlo.tanh %0 : tensor<?x4xf32, [@arg0_d0, 4]>
    return %1 : tensor<?x4xf32, [@arg0_d0, 4]>
  }
}
