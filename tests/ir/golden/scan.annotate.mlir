module attributes {disc.stage = "annotate"} {
  "disc.signature"() {arguments = [{dims = [@arg0_d0, 3, 4], dtype = "f32", path = "args[0]"}, {dims = [4, 8], dtype = "f32", path = "args[1]"}, {dims = [8, 8], dtype = "f32", path = "args[2]"}, {dims = [3, 8], dtype = "f32", path = "args[3]"}], kept = array<i64: 0, 1, 2, 3>, name = "main", results = [{dims = [3, 8], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "arg0_d0"} : () -> ()
  func.func @main(%arg0: tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x4xf32, [@arg0_d0, 3, 4]>) -> tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg3) : tensor<i32>, tensor<3x8xf32>
    cond {
      %2 = stablehlo.compare LT, %iterArg, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.dynamic_slice %arg0, %iterArg, %c, %c, sizes = [1, 3, 4] : (tensor<?x3x4xf32, [@arg0_d0, 3, 4]>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
      %4 = stablehlo.dot_general %3, %arg1, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
      %5 = stablehlo.dot_general %iterArg_1, %arg2, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
      %6 = stablehlo.add %4, %5 : tensor<3x8xf32>
      %7 = stablehlo.tanh %6 : tensor<3x8xf32>
      %8 = stablehlo.add %iterArg, %c_0 : tensor<i32>
      stablehlo.return %8, %7 : tensor<i32>, tensor<3x8xf32>
    }
    return %1#1 : tensor<3x8xf32>
  }
}
