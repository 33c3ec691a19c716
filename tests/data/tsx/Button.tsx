import React, { useState } from 'react';

interface Props<T> {
  label: string;
  onPress?: (value: T) => void;
}

/** A button. */
export const Button: React.FC<Props<number>> = ({ label, onPress }) => {
  // local state
  const [count, setCount] = useState<number>(0);
  const press = () => { setCount(count + 1); onPress?.(count); };
  return (
    <Pressable kind="soft" onClick={press}>
      Pressed {count} times
      <Icons.Star size={MAX_SIZE} />
    </Pressable>
  );
};

export function Panel<T>({ children }: { children: React.ReactNode }): JSX.Element {
  return <>{children}</>;
}

/** Memoised. */
export default React.memo(function Größe(props: Props<string>) {
  return <b>{props.label}</b>;
});

class Legacy extends React.Component<Props<string>> {
  render() { return <Button label="old" />; }
}
