// RUN: opt --pass-pipeline='annotate,simplify,thin-barriers,fuse-groups,remove-barriers' --split-input-file %s | filecheck %s

// Kernels are chosen and ordered: what reads a barrier reads what went into it.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.exponential %y : tensor<?xf32, [@s]>
  %1:2 = stablehlo.optimization_barrier %x, %0 : tensor<?xf32, [@s]>, tensor<?xf32, [@s]>
  %2 = stablehlo.tanh %1#0 : tensor<?xf32, [@s]>
  %3 = stablehlo.add %2, %1#1 : tensor<?xf32, [@s]>
  return %3 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[E:.*]] = call @loop_0(%arg1)
// CHECK-NEXT: %[[R:.*]] = call @loop_1(%arg0, %[[E]])
// CHECK-NEXT: return %[[R]]

// -----

// Barriers within loops go, too.
func.func @main(%n: tensor<i32>, %x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32, [@s]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %0 = stablehlo.exponential %y : tensor<?xf32, [@s]>
    %1 = stablehlo.multiply %0, %a : tensor<?xf32, [@s]>
    %2:2 = stablehlo.optimization_barrier %1, %a : tensor<?xf32, [@s]>, tensor<?xf32, [@s]>
    %3 = stablehlo.add %2#0, %2#1 : tensor<?xf32, [@s]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %3 : tensor<i32>, tensor<?xf32, [@s]>
  }
  return %r#1 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while(%{{.*}}, %[[A:.*]] = %arg1)
// CHECK: do {
// CHECK-NEXT: %[[P:.*]] = func.call @loop_2(%arg2, %[[A]])
// CHECK-NEXT: %[[S:.*]] = func.call @loop_3(%[[P]], %[[A]])
// CHECK: stablehlo.return %{{.*}}, %[[S]]

// -----

// Kernels that a barrier has kept apart stay apart; without one, all is one kernel.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.exponential %y : tensor<?xf32, [@s]>
  %2 = stablehlo.tanh %x : tensor<?xf32, [@s]>
  %3 = stablehlo.add %2, %0 : tensor<?xf32, [@s]>
  return %3 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = call @loop_0
// CHECK-NEXT: return %[[R]]
