module attributes {disc.arenas = [@"64*floordiv(3*arg0_d0 + 1, 2)"], disc.flops = @"625*arg0_d0", disc.stage = "plan"} {
  "disc.signature"() {arguments = [{dims = [@arg0_d0, 3, 4], dtype = "f32", path = "args[0]"}, {dims = [4, 8], dtype = "f32", path = "args[1]"}, {dims = [8, 8], dtype = "f32", path = "args[2]"}, {dims = [3, 8], dtype = "f32", path = "args[3]"}], kept = array<i64: 0, 1, 2, 3>, name = "main", results = [{dims = [3, 8], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %0 = call @dot_0(%arg0, %arg1) {disc.buffers = [#disc.buffer<"arena", {bytes = @"96*arg0_d0", offset = 0 : i64}>]} : (tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, tensor<4x8xf32>) -> tensor<?x3x8xf32, [@arg0_d0, 3, 8]>
    %1 = call @recurrence_1(%arg3, %0, %arg2) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]} : (tensor<3x8xf32>, tensor<?x3x8xf32, [@arg0_d0, 3, 8]>, tensor<8x8xf32>) -> tensor<3x8xf32>
    return %1 : tensor<3x8xf32>
  }
  func.func private @dot_0(%arg0: tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, %arg1: tensor<4x8xf32>) -> tensor<?x3x8xf32, [@arg0_d0, 3, 8]> attributes {disc.fusion = #disc.fusion<"dot", {product = {batch = [], element = "f32", k = {lhs = 1 : i64, result = 0 : i64, rhs = 8 : i64, size = 4 : i64}, lhs = 0 : i64, m = {lhs = 4 : i64, result = 8 : i64, rhs = 0 : i64, size = @"3*arg0_d0"}, n = {lhs = 0 : i64, result = 1 : i64, rhs = 1 : i64, size = 8 : i64}, rhs = 1 : i64}}>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : (tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, tensor<4x8xf32>) -> tensor<?x3x8xf32, [@arg0_d0, 3, 8]>
    return %0 : tensor<?x3x8xf32, [@arg0_d0, 3, 8]>
  }
  func.func private @recurrence_1(%arg0: tensor<3x8xf32>, %arg1: tensor<?x3x8xf32, [@arg0_d0, 3, 8]>, %arg2: tensor<8x8xf32>) -> tensor<3x8xf32> attributes {disc.fusion = #disc.fusion<"recurrence", {loops = [{scalars = array<i64: 0>, states = array<i64: 1>, trip = @arg0_d0}]}>} {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = "disc.shape"() {dims = [@arg0_d0]} : () -> tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg0) : tensor<i32>, tensor<3x8xf32>
    cond {
      %2 = stablehlo.compare LT, %iterArg, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.dynamic_slice %arg1, %iterArg, %c, %c, sizes = [1, 3, 8] : (tensor<?x3x8xf32, [@arg0_d0, 3, 8]>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x8xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
      %4 = stablehlo.dot_general %iterArg_1, %arg2, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
      %5 = stablehlo.add %3, %4 : tensor<3x8xf32>
      %6 = stablehlo.tanh %5 : tensor<3x8xf32>
      %7 = stablehlo.add %iterArg, %c_0 : tensor<i32>
      stablehlo.return %7, %6 : tensor<i32>, tensor<3x8xf32>
    }
    return %1#1 : tensor<3x8xf32>
  }
}
