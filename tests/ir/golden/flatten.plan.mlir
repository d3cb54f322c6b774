module attributes {disc.arenas = [0], disc.flops = 0 : i64, disc.stage = "plan"} {
  "disc.signature"() {arguments = [{dims = [@arg0_d0, 8], dtype = "f32", path = "args[0]"}], kept = array<i64: 0>, name = "main", results = [{dims = [@"16*arg0_d0"], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "arg0_d0"} : () -> ()
  "disc.dim"() {min = 0 : i64, name = "16*arg0_d0"} : () -> ()
  "disc.dim"() {min = 0 : i64, name = "2*arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?xf32, [@"16*arg0_d0"]> {
    %0 = call @loop_0(%arg0) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]} : (tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]>
    %1 = "disc.shape"() {dims = [@"16*arg0_d0"]} : () -> tensor<1xi64>
    %2 = stablehlo.dynamic_reshape %0, %1 : (tensor<?x8xf32, [@"2*arg0_d0", 8]>, tensor<1xi64>) -> tensor<?xf32, [@"16*arg0_d0"]>
    return %2 : tensor<?xf32, [@"16*arg0_d0"]>
  }
  func.func private @loop_0(%arg0: tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]> attributes {disc.fusion = #disc.fusion<"loop", {}>} {
    %0 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x8xf32, [@arg0_d0, 8]>, tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]>
    return %0 : tensor<?x8xf32, [@"2*arg0_d0", 8]>
  }
}
