module {
  "disc.symbol"() {min = 0 : i64, sym_name = "arg0_d0"} : () -> ()
  "disc.dim"() {min = 0 : i64, sym_name = "16*arg0_d0"} : () -> ()
  "disc.dim"() {min = 0 : i64, sym_name = "2*arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?xf32, [@"16*arg0_d0"]> {
    %0 = call @loop_0(%arg0) : (tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]>
    %1 = "disc.shape"() {dims = [@"16*arg0_d0"]} : () -> tensor<1xi64>
    %2 = stablehlo.dynamic_reshape %0, %1 : (tensor<?x8xf32, [@"2*arg0_d0", 8]>, tensor<1xi64>) -> tensor<?xf32, [@"16*arg0_d0"]>
    return %2 : tensor<?xf32, [@"16*arg0_d0"]>
  }
  func.func private @loop_0(%arg0: tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]> attributes {disc.kind = "loop"} {
    %0 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<?x8xf32, [@arg0_d0, 8]>, tensor<?x8xf32, [@arg0_d0, 8]>) -> tensor<?x8xf32, [@"2*arg0_d0", 8]>
    return %0 : tensor<?x8xf32, [@"2*arg0_d0", 8]>
  }
}
