// signal
// exit status 1 while in xla:
// seed: 70002
// argument: 0 8 0
// argument: 0 3 0
// errors: 0.0
// call: 1 1
func.func public @main(%x0: tensor<?xbf16>, %x1: tensor<?xi32>) -> (tensor<?xbf16>) {
  %t1, %t2, %t3 = "stablehlo.sort"(%x0, %x1, %x1) <{dimension = 0 : i64, is_stable = true}> ({^bb0(%t4: tensor<bf16>, %t5: tensor<bf16>, %t6: tensor<i32>, %t7: tensor<i32>, %t8: tensor<i32>, %t9: tensor<i32>):
    %t10 = "stablehlo.compare"(%t4, %t5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<bf16>, tensor<bf16>) -> (tensor<i1>)
    "stablehlo.return"(%t10) : (tensor<i1>) -> ()}) : (tensor<?xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xbf16>, tensor<?xi32>, tensor<?xi32>)
  return %t1 : tensor<?xbf16>
}
