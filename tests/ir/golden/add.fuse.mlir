module attributes {disc.flops = @"8*arg0_d0", disc.stage = "fuse"} {
  "disc.signature"() {arguments = [{dims = [@arg0_d0, 4], dtype = "f32", path = "args[0]"}, {dims = [@arg0_d0, 4], dtype = "f32", path = "args[1]"}], kept = array<i64: 0, 1>, name = "main", results = [{dims = [@arg0_d0, 4], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x4xf32, [@arg0_d0, 4]>, %arg1: tensor<?x4xf32, [@arg0_d0, 4]>) -> tensor<?x4xf32, [@arg0_d0, 4]> {
    %0 = "disc.shape"() {dims = [@"4*arg0_d0"]} : () -> tensor<1xi64>
    %1 = stablehlo.dynamic_reshape %arg0, %0 : (tensor<?x4xf32, [@arg0_d0, 4]>, tensor<1xi64>) -> tensor<?xf32, [@"4*arg0_d0"]>
    %2 = stablehlo.dynamic_reshape %arg1, %0 : (tensor<?x4xf32, [@arg0_d0, 4]>, tensor<1xi64>) -> tensor<?xf32, [@"4*arg0_d0"]>
    %3 = call @loop_0(%1, %2) : (tensor<?xf32, [@"4*arg0_d0"]>, tensor<?xf32, [@"4*arg0_d0"]>) -> tensor<?xf32, [@"4*arg0_d0"]>
    %4 = "disc.shape"() {dims = [@arg0_d0, 4]} : () -> tensor<2xi64>
    %5 = stablehlo.dynamic_reshape %3, %4 : (tensor<?xf32, [@"4*arg0_d0"]>, tensor<2xi64>) -> tensor<?x4xf32, [@arg0_d0, 4]>
    return %5 : tensor<?x4xf32, [@arg0_d0, 4]>
  }
  func.func private @loop_0(%arg0: tensor<?xf32, [@"4*arg0_d0"]>, %arg1: tensor<?xf32, [@"4*arg0_d0"]>) -> tensor<?xf32, [@"4*arg0_d0"]> attributes {disc.fusion = #disc.fusion<"loop", {collapsed}>} {
    %0 = stablehlo.add %arg0, %arg1 : tensor<?xf32, [@"4*arg0_d0"]>
    %1 = stablehlo.tanh %0 : tensor<?xf32, [@"4*arg0_d0"]>
    return %1 : tensor<?xf32, [@"4*arg0_d0"]>
  }
}
