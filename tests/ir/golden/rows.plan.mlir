module attributes {disc.arena_bytes = "64*b"} {
  "disc.symbol"() {min = 0 : i64, sym_name = "b"} : () -> ()
  "disc.symbol"() {min = 0 : i64, sym_name = "s"} : () -> ()
  func.func @main(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?xf32, [@b]> {
    %0 = call @dot_0(%arg0, %arg1) {disc.buffers = [{bytes = "64*b", offset = "0", space = "arena"}]} : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    %1 = call @row_reduce_1(%0) {disc.buffers = [{index = 0 : i64, space = "result"}]} : (tensor<?x16xf32, [@b, 16]>) -> tensor<?xf32, [@b]>
    return %1 : tensor<?xf32, [@b]>
  }
  func.func private @dot_0(%arg0: tensor<?x?xf32, [@b, @s]>, %arg1: tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]> attributes {disc.kind = "dot"} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32, [@b, 16]>
    return %0 : tensor<?x16xf32, [@b, 16]>
  }
  func.func private @row_reduce_1(%arg0: tensor<?x16xf32, [@b, 16]>) -> tensor<?xf32, [@b]> attributes {disc.collapsed, disc.columns = 1 : i64, disc.kind = "row_reduce"} {
    %0 = stablehlo.exponential %arg0 : tensor<?x16xf32, [@b, 16]>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<?x16xf32, [@b, 16]>, tensor<f32>) -> tensor<?xf32, [@b]>
    return %1 : tensor<?xf32, [@b]>
  }
}
