module attributes {disc.arenas = [@"64*b"], disc.flops = @"32*b*s + 32*b", disc.stage = "plan"} {
  "disc.signature"() {arguments = [{dims = [@b, @s], dtype = "f32", path = "args[0]"}, {dims = [@s, 16], dtype = "f32", path = "args[1]"}], kept = array<i64: 0, 1>, name = "main", results = [{dims = [@b], dtype = "f32", path = "result"}]} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "b"} : () -> ()
  "disc.symbol"() {min = 0 : i64, name = "s"} : () -> ()
  func.func @main(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?xf32, [@b]> {
    %0 = call @dot_0(%arg0, %arg1) {disc.buffers = [#disc.buffer<"arena", {bytes = @"64*b", offset = 0 : i64}>]} : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    %1 = call @row_reduce_1(%0) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]} : (tensor<?x16xf32, [@b, 16]>) -> tensor<?xf32, [@b]>
    return %1 : tensor<?xf32, [@b]>
  }
  func.func private @dot_0(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]> attributes {disc.fusion = #disc.fusion<"dot", {product = {batch = [], element = "f32", k = {lhs = 1 : i64, result = 0 : i64, rhs = 16 : i64, size = @s}, lhs = 0 : i64, m = {lhs = @s, result = 16 : i64, rhs = 0 : i64, size = @b}, n = {lhs = 0 : i64, result = 1 : i64, rhs = 1 : i64, size = 16 : i64}, rhs = 1 : i64}}>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    return %0 : tensor<?x16xf32, [@b, 16]>
  }
  func.func private @row_reduce_1(%arg0: tensor<?x16xf32, [@b, 16]>) -> tensor<?xf32, [@b]> attributes {disc.fusion = #disc.fusion<"row_reduce", {collapsed, columns = 1 : i64}>} {
    %0 = stablehlo.exponential %arg0 : tensor<?x16xf32, [@b, 16]>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<?x16xf32, [@b, 16]>, tensor<f32>) -> tensor<?xf32, [@b]>
    return %1 : tensor<?xf32, [@b]>
  }
}
