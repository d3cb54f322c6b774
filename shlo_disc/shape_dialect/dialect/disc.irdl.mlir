module {
  irdl.dialect @disc {
    irdl.attribute @fusion {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.dictionary" 
      irdl.parameters(kind: %0, roles: %1)
    }
    irdl.attribute @buffer {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.dictionary" 
      irdl.parameters(space: %0, place: %1)
    }
    irdl.attribute @kernel {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.parameters(choice: %0)
    }
    irdl.attribute @library {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.parameters(call: %0)
    }
    irdl.attribute @window {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.parameters(window: %0)
    }
    irdl.operation @symbol {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @dim {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @constraint {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"relation" = %0}
    }
    irdl.operation @signature {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @shape {
      %0 = irdl.base "#builtin.array" 
      irdl.attributes {"dims" = %0}
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @bind {
      %0 = irdl.any
      irdl.operands(value: %0)
      %1 = irdl.base "#builtin.array" 
      irdl.attributes {"symbols" = %1}
    }
    irdl.operation @nonzero {
      %0 = irdl.any
      irdl.operands(mask: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @piece {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(source: %0, starts: variadic %1)
      %2 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"part" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
  }
  irdl.dialect @disc_host {
    irdl.operation @plan {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %0}
    }
    irdl.operation @size {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %0}
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @constant {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %0}
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @part {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @packed {
      %0 = irdl.any
      irdl.operands(rhs: %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @launch {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @gemm {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @product {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @convolution {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @attention_gradient {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @attention {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @library {
      %0 = irdl.any
      irdl.operands(buffers: variadic %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @copy {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(source: %0, target: %1)
      %2 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %2}
    }
    irdl.operation @clear {
      %0 = irdl.any
      irdl.operands(target: %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
    irdl.operation @bind {
      %0 = irdl.any
      irdl.operands(source: %0)
      %1 = irdl.base "#builtin.dictionary" 
      irdl.attributes {"call" = %1}
    }
  }
}

